package sandbox

import "github.com/quern-project/quern/wasmhost/module"

// Inspect parses a module and lists what keeps it from being a program of this
// host, one line each; there is nothing for one that Load would accept as far
// as it can be known without compiling it.
func (h *Host) Inspect(wasm []byte) (info *module.Info, problems []string, err error) {
	info, err = module.Inspect(wasm, h.prepare.Limits)
	if err != nil {
		return nil, nil, &ModuleError{Reason: err}
	}
	return info, info.JobProblems(h.prepare), nil
}
