package sandbox

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
)

func TestGuestStack(t *testing.T) {
	text := "wasm error: unreachable\nwasm stack trace:\n" +
		"\tquern.yield()\n" +
		"\twasi_snapshot_preview1.fd_write(i32,i32,i32,i32) i32\n" +
		"\tmy.module.main.(*T).Method(i32) i32\n" +
		"\tmy.module.$20(i32,i32,i32)\n" +
		"\tmy.module.$12(i64,f32) (i32,i64)\n" +
		"\tmy.module.std::vec<int, (anonymous)>::push(int)(i32)\n" +
		"\t... maybe followed by omitted frames\n\nGo runtime stack trace:\n\tmy.module.not.this()"
	want := []string{"main.(*T).Method", "$12", "std::vec<int, (anonymous)>::push(int)"}
	if diff := cmp.Diff(want, guestStack(text, "my.module", 20)); diff != "" {
		t.Error(diff)
	}
	if got := guestStack("no stack at all", "", 0); got != nil {
		t.Error(got)
	}
}

// FuzzShell: the shell of whatever there is is an error or of the same length in
// functions, and valid if the original is.
func FuzzShell(f *testing.F) {
	f.Add(starting())
	f.Add(importing("a", "b"))
	f.Add(bomb(3, 2, 1))
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x00\x09\x04name\x01\x02\x01\x00"))
	f.Fuzz(func(t *testing.T, wasm []byte) {
		light, err := shell(wasm)
		if err != nil {
			return
		}
		again, err := shell(light)
		if err != nil || !bytes.Equal(again, light) {
			t.Errorf("the shell of a shell is another one: %v", err)
		}
	})
}

func TestShellIsValidAndLooksTheSame(t *testing.T) {
	ctx := t.Context()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer r.Close(ctx)
	for name, wasm := range map[string][]byte{"go": goGuest(t), "c": cGuest(t), "handmade": starting()} {
		light, err := shell(wasm)
		if err != nil {
			t.Fatal(err)
		}
		full, err := r.CompileModule(ctx, wasm)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.CompileModule(ctx, light)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if a, b := len(full.ExportedFunctions()), len(got.ExportedFunctions()); a != b || len(full.ImportedFunctions()) != len(got.ImportedFunctions()) {
			t.Errorf("%s: exports %d and %d functions", name, a, b)
		}
		for n, def := range full.ExportedFunctions() {
			if o := got.ExportedFunctions()[n]; o == nil || o.Index() != def.Index() || o.Name() != def.Name() {
				t.Errorf("%s: export %s differs", name, n)
			}
		}
	}
}

func TestCompileChildRefusesNonsense(t *testing.T) {
	for _, stdin := range []string{"", "abc", "\x05\x00\x00\x00{}", "\x03\x00\x00\x00[1]"} {
		var out bytes.Buffer
		CompileChild(strings.NewReader(stdin), &out)
		var reply compileReply
		if err := json.Unmarshal(out.Bytes(), &reply); err != nil || reply.Done || !strings.Contains(reply.Text, "this command is internal") {
			t.Errorf("%q was answered with %q", stdin, out.String())
		}
	}
}
