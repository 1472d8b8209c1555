package abi

// Names of the configuration keys that SDKs read with conf_get. The engine
// declares these keys, with all others, in engine/conf.
const (
	KeyDefaultParallelism = "quern.default.parallelism"
	KeyTaskMemory         = "quern.task.memory"
)
