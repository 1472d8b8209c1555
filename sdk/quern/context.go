package quern

import (
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/quern-project/quern/sdk/abi"
)

// Context is the driver's connection to the engine, and where RDDs come from.
type Context struct {
	parallelism int // partitions of a source that does not say
}

// settings collects what options set.
type settings struct {
	appName string
	conf    map[string]string
}

// ContextOption is a setting of NewContext.
type ContextOption func(*settings)

// AppName names the application in logs and pages.
func AppName(name string) ContextOption {
	return func(s *settings) { s.appName = name }
}

// Conf sets a configuration key, such as "quern.default.parallelism". What is
// set here comes before flags, files and the environment.
func Conf(key, value string) ContextOption {
	return func(s *settings) { s.conf[key] = value }
}

// defaultParallelism holds where the engine has no value. It is not the number
// of cores: results must be the same on every machine.
const defaultParallelism = 8

// NewContext opens the driver's context. A job has one; call it before anything
// else, in main.
func NewContext(options ...ContextOption) (*Context, error) {
	s := settings{conf: map[string]string{}}
	for _, o := range options {
		o(&s)
	}
	if err := checkDriver("newContext", callSite()); err != nil {
		return nil, err
	}
	got := hostContextOpen(&abi.ContextDesc{Version: abi.Version, SDK: "quern-go/1", AppName: s.appName, Conf: s.conf})
	if got < 0 {
		return nil, fmt.Errorf("newContext: %s", lastError(got))
	}
	ctx := &Context{parallelism: defaultParallelism}
	if v, ok := confValue(abi.KeyDefaultParallelism); ok && v != "" {
		n, err := strconv.Atoi(v)
		if err == nil {
			err = checkPartitions(n)
		}
		if err != nil {
			return nil, fmt.Errorf("newContext: %s=%q: not a number between 1 and %d", abi.KeyDefaultParallelism, v, maxPartitions)
		}
		ctx.parallelism = n
	}
	tuneGuest()
	return ctx, nil
}

// Conf returns the value of a configuration key as the engine sees it, and
// whether there is one.
func (c *Context) Conf(key string) (string, bool) { return confValue(key) }

// confValue asks the host.
func confValue(key string) (string, bool) {
	buf := make([]byte, 256)
	n := hostConfGet(key, buf)
	if n > int64(len(buf)) {
		buf = make([]byte, n)
		n = hostConfGet(key, buf)
	}
	if n < 0 {
		return "", false
	}
	return string(buf[:min(n, int64(len(buf)))]), true
}

// Collector settings of a guest. Go's defaults (a cycle each time the heap
// doubles, from 4 MiB on) would collect several times a second in a small
// sandbox, on the one thread that it has. Clones inherit them from the driver.
const (
	gcPercent = 400
	// heapShare of the memory's limit is where the collector turns eager; the
	// rest is for stacks, globals and fragmentation.
	heapShareNum, heapShareDen = 3, 4
)

// tuneGuest prepares a sandbox for its tasks. On the native platform the process
// is the user's own and stays as it is.
func tuneGuest() {
	if !forks {
		return
	}
	debug.SetGCPercent(gcPercent)
	if v, ok := confValue(abi.KeyTaskMemory); ok {
		if n, ok := parseBytes(v); ok {
			limitHeap(n)
		}
	}
	findRandom()
}

// limitHeap makes the collector eager when memory, in bytes, gets short.
func limitHeap(memory uint64) {
	if memory == 0 || memory == registry.memory || memory > 1<<40 {
		return
	}
	registry.memory = memory
	debug.SetMemoryLimit(int64(memory / heapShareDen * heapShareNum))
}

// parseBytes reads a size such as "512m" or "1gb"; a bare number is bytes.
func parseBytes(s string) (uint64, bool) {
	s = strings.ToLower(strings.TrimSpace(s))
	digits := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyz ")
	shift, ok := map[string]uint{
		"": 0, "b": 0, "k": 10, "kb": 10, "kib": 10, "m": 20, "mb": 20, "mib": 20,
		"g": 30, "gb": 30, "gib": 30, "t": 40, "tb": 40, "tib": 40,
	}[strings.TrimSpace(s[len(digits):])]
	n, err := strconv.ParseUint(digits, 10, 32)
	return n << shift, ok && err == nil
}
