package quern

import (
	"path"
	"runtime"
	"strconv"
	"strings"
	"unsafe"
)

// sdkPrefix begins the names of this package's functions.
const sdkPrefix = "github.com/quern-project/quern/sdk/quern."

// callSite is "file.go:line" of the first caller outside the SDK.
func callSite() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if f.File != "" && (!strings.HasPrefix(f.Function, sdkPrefix) || strings.HasSuffix(f.File, "_test.go")) {
			return path.Base(strings.ReplaceAll(f.File, `\`, "/")) + ":" + strconv.Itoa(f.Line)
		}
		if !more {
			return "unknown"
		}
	}
}

// entry is the address of a function value's code, 0 for nil.
func entry[F any](f F) uintptr {
	// A func value is a pointer to a closure, whose first word is the code.
	closure := *(*unsafe.Pointer)(unsafe.Pointer(&f))
	if closure == nil {
		return 0
	}
	return *(*uintptr)(closure)
}
