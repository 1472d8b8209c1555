package sandbox

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/tetratelabs/wazero/api"
)

// A guest's calls nest on a stack that wazero keeps outside the linear memory,
// in a []byte that it doubles on demand, up to 100 MB, and never shrinks. wazero
// does not say how long it is, but its api.Function holds that []byte in a field,
// and reflection may read the length of an unexported field.

// entry is a guest function that is called from outside, with its stack.
type entry struct {
	api.Function
	name  string
	stack reflect.Value
}

// keepStack is the length in bytes above which a stack is not kept for the next
// run.
const keepStack = 256 << 10

// maxStack is the length in bytes above which wazero does not let a stack grow.
const maxStack = 50_000_000

var errLayout = errors.New("cannot find the guest's stack in this version of wazero")

func newEntry(mod api.Module, name string) (*entry, error) {
	fn := mod.ExportedFunction(name)
	if fn == nil {
		return nil, fmt.Errorf("the program does not export function %q", name)
	}
	v := reflect.ValueOf(fn)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil, errLayout
	}
	stack := v.Elem().FieldByName("stack")
	if !stack.IsValid() || stack.Type() != reflect.TypeFor[[]byte]() || stack.Len() == 0 {
		return nil, errLayout
	}
	return &entry{Function: fn, name: name, stack: stack}, nil
}

// stackLen is the length of the stack in bytes: what the deepest call of the
// function needed, rounded up generously.
func (e *entry) stackLen() int64 { return int64(e.stack.Len()) }
