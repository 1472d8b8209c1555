package conf

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/quern-project/quern/sdk/abi"
)

// The application.
var (
	AppName = textKey("quern.app.name", "", `
The application's name, for people. quern run sets it to the job's file name when nobody else does.`)

	MasterURL = masterKey("quern.master", "local[*]", `
Where the job runs: in this process, with one slot (local), N slots (local[N]) or a slot for each core (local[*]). In
local[N,F] and local[*,F] a task that fails is tried F times in all.`).atLaunch()

	Seed = seedKey("quern.seed", "drawn at random at each launch", `
The seed of every random generator of the job. With the same seed, the same input and the same partitions a job gives
the same bytes, whatever the number of slots and however often tasks are tried again.`).
		decided(func() string { return strconv.FormatUint(rand.Uint64(), 10) })

	DefaultParallelism = intKey(abi.KeyDefaultParallelism, "8", 1, 1<<20, `
The number of partitions of Parallelize, Range and shuffles that name none. It is a constant and never the number of
cores: the number of partitions decides in which order values are combined and which random numbers a partition
draws, so a job would give other bytes on another machine.`)
)

// Memory.
var (
	DriverMemory = sizeKey("quern.driver.memory", "1g", MiB, 4*GiB, `
The limit of the driver's linear memory. The driver that would grow beyond it fails with this limit's name. WebAssembly
cannot address more than 4g.`).atLaunch()

	DriverImageMemory = sizeKey("quern.driver.imageMemory", "4g", MiB, math.MaxInt64, `
The most that the images of the driver's memory may take together. There is one for each running job and for each shuffle
that later jobs may read, but what has not changed between them is kept once. An action beyond it fails.`).atLaunch()

	DriverMaxResultSize = cappedAtLaunch(sizeKey("quern.driver.maxResultSize", "1g", 0, math.MaxInt64, `
The most that the results of all tasks of one action may amount to. An action beyond it fails, so that a Collect of too
much does not take the driver's memory. 0 is no limit.`))

	ExecutorMemory = cappedAtLaunch(sizeKey("quern.executor.memory", "1g", 16*MiB, math.MaxInt64, `
The memory that all tasks of an executor share: their linear memories beyond the image, sort buffers, shuffle buffers.
What can spill to disk does so when it is used up. Locally the process is the only executor.`))

	TaskMemory = cappedAtLaunch(sizeKey(abi.KeyTaskMemory, "512m", MiB, 4*GiB, `
The limit of one task's linear memory. A task that would grow beyond it fails with this limit's name. A task gets no
more than the executor's memory allows either.`))

	TaskStackSize = sizeKey("quern.task.stackSize", "16m", 64*KiB, 256*MiB, `
The limit of the call stack that sandboxed code may use outside its linear memory. Recursion beyond it fails the task.`).atLaunch()
)

// Scheduling.
var (
	TaskMaxFailures = intKey("quern.task.maxFailures", "4", 1, 1000, `
How often a task may fail before its job fails. With a local master that gives no number of attempts itself the default
is 1, because on one machine the same task mostly fails the same way again.`).atLaunch()

	StageMaxConsecutiveAttempts = intKey("quern.stage.maxConsecutiveAttempts", "4", 1, 1000, `
How often in a row a stage may be submitted again because shuffle data was lost, before its job fails.`).atLaunch()
)

// Input and shuffle.
var (
	FilesMaxPartitionBytes = sizeKey("quern.files.maxPartitionBytes", "16m", 1, math.MaxInt64, `
The most bytes of input in one partition of a text source, for files that can be cut. Smaller files share a partition.`)

	ShuffleCompress = boolKey("quern.shuffle.compress", "true", `
Whether shuffle data is compressed, in files and on the network.`)

	ShuffleCompressionCodec = choiceKey("quern.shuffle.compression.codec", "s2", []string{"s2", "zstd"}, `
How shuffle data is compressed: s2 is the faster one, zstd makes less of it.`)

	LocalDir = folderKey("quern.local.dir", "the system's folder for temporary files", `
Where shuffle files and spilled data go, in a folder of the application's own that is removed at its end.
Of one that was killed it is removed by the next that starts.`).
		decided(os.TempDir).atLaunch()
)

// Sandbox.
var (
	CompileCPU = durationKey("quern.compile.cpu", "30s", time.Second, time.Hour, `
The processor time that compiling a module may take. A module beyond it is refused.`).atLaunch()

	CompileMemory = sizeKey("quern.compile.memory", "1g", 64*MiB, 64*GiB, `
The memory that compiling a module may take. A module beyond it is refused.`).atLaunch()

	CacheDir = folderKey("quern.cache.dir", "quern in the user's folder for caches", `
Where compiled modules are kept. Only its owner may write to it: whoever can, can run code as you. When empty, modules
are compiled anew each time.`).
		decided(defaultCacheDir).atLaunch()

	SafepointInterval = intKey("quern.sandbox.safepointInterval", "65536", 256, 1<<24, `
How many loop rounds and function calls sandboxed code makes between two looks at whether it was killed. Fewer make
a kill quicker and the code slower.`).atLaunch()
)

// Testing.
var (
	TestEncodeMessages = boolKey("quern.test.encodeMessages", "false", `
For tests: each message between driver and executor is encoded and decoded again, as if it went over a network.`).
		atLaunch()

	TestFailTasks = fractionKey("quern.test.failTasks", "0", `
For tests: the share of attempts of tasks that fail on purpose, at their start, at their first output or at their end,
except the last attempt that the task has. Which attempts fail follows from quern.seed.`).atLaunch()
)

// sections is the table of all keys, in the order of the documentation.
func sections() []section {
	return []section{
		{"Application", []entry{AppName, MasterURL, Seed, DefaultParallelism}},
		{"Memory", []entry{DriverMemory, DriverImageMemory, DriverMaxResultSize, ExecutorMemory, TaskMemory, TaskStackSize}},
		{"Scheduling", []entry{TaskMaxFailures, StageMaxConsecutiveAttempts}},
		{"Input and shuffle", []entry{FilesMaxPartitionBytes, ShuffleCompress, ShuffleCompressionCodec, LocalDir}},
		{"Sandbox", []entry{CompileCPU, CompileMemory, CacheDir, SafepointInterval}},
		{"Testing", []entry{TestEncodeMessages, TestFailTasks}},
	}
}

type section struct {
	title   string
	entries []entry
}

type entry interface{ declared() *declaration }

// keys returns the declarations of all keys.
func keys() []*declaration {
	var all []*declaration
	for _, s := range sections() {
		for _, e := range s.entries {
			all = append(all, e.declared())
		}
	}
	return all
}

func find(name string) *declaration {
	for _, k := range keys() {
		if k.name == name {
			return k
		}
	}
	return nil
}

// DefaultCacheDir returns the directory that quern.cache.dir stands for unless it
// is set. The error says why there is none: the environment variable that names
// the user's directory for caches is not set, or is not an absolute path.
func DefaultCacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err == nil && !filepath.IsAbs(dir) {
		err = fmt.Errorf("%s is not an absolute path", CacheDirVariable())
	}
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "quern"), nil
}

// CacheDirVariable returns the name of the environment variable from which
// DefaultCacheDir is derived.
func CacheDirVariable() string {
	switch runtime.GOOS {
	case "windows":
		return "LocalAppData"
	case "darwin", "ios":
		return "HOME"
	}
	if os.Getenv("XDG_CACHE_HOME") != "" {
		return "XDG_CACHE_HOME"
	}
	return "HOME"
}

func defaultCacheDir() string {
	dir, err := DefaultCacheDir()
	if err != nil {
		return "" // no safe place
	}
	return dir
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
