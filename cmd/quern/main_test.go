package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes the test binary a stand-in for quern, for the scripts and for
// the child processes that quern starts.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"quern": main, "stubborn": stubborn})
}

// stubborn is a program that is told of the first Ctrl-C and goes on.
func stubborn() {
	ctx, _ := interruptible(context.Background(), os.Stderr)
	fmt.Println("ready")
	<-ctx.Done()
	fmt.Println(context.Cause(ctx))
	select {}
}

// TestScripts runs the command lines in testdata/scripts, each a chapter of
// what the command line does.
func TestScripts(t *testing.T) {
	goEnv := goSettings(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/scripts",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, goEnv...)
			env.Setenv("HOME", filepath.Join(env.WorkDir, ".home"))
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, ".cache"))
			quern, err := exec.LookPath("quern")
			if err != nil {
				return err
			}
			env.Setenv("ONLY_QUERN", filepath.Dir(quern))
			// Whatever is built here is built without a network.
			env.Setenv("GOPROXY", "off")
			env.Setenv("GOFLAGS", "-mod=mod")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"hex":   writeHex,
			"bomb":  writeBomb,
		},
	})
}

// goSettings lets scripts and child processes share the caches and the toolchain of the
// Go that runs the test: everything else would have to be compiled anew.
func goSettings(t *testing.T) []string {
	names := []string{"GOCACHE", "GOMODCACHE", "GOROOT", "GOTOOLCHAIN"}
	out, err := exec.Command("go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		t.Fatalf("go env: %v", err)
	}
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	if len(lines) != len(names) {
		t.Fatalf("go env printed %q", out)
	}
	for i := range lines {
		lines[i] = names[i] + "=" + lines[i]
	}
	return lines
}

// exits runs a command and checks its exit code: "exits 2 quern run".
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARGS...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d\nstdout: %s\nstderr: %s", code, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// writeHex writes bytes to a file: "hex FILE 0061 736d".
func writeHex(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: hex FILE BYTES...")
	}
	data, err := hex.DecodeString(strings.Join(args[1:], ""))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o666))
}

// writeBomb writes a module of a few hundred KiB that would keep a compiler
// busy: one function with thousands of locals that live across thousands of
// nested loops.
func writeBomb(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: bomb FILE")
	}
	const locals, loops = 15_000, 15_000
	body := []byte{1}
	body = binary.AppendUvarint(body, locals)
	body = append(body, 0x7e) // i64
	for i := range uint64(loops) {
		body = append(body, 0x03, 0x40) // loop
		for j := range uint64(4) {
			body = append(body, 0x20) // local.get
			body = binary.AppendUvarint(body, (i*7+j*3)%locals)
			body = append(body, 0x21) // local.set
			body = binary.AppendUvarint(body, (i*5+j)%locals)
		}
	}
	body = append(body, bytes.Repeat([]byte{0x0b}, loops+1)...) // end
	code := binary.AppendUvarint([]byte{1}, uint64(len(body)))
	code = append(code, body...)
	wasm := []byte("\x00asm\x01\x00\x00\x00" +
		"\x01\x04\x01\x60\x00\x00" + // type () -> ()
		"\x03\x02\x01\x00") // one function of it
	wasm = append(wasm, 0x0a)
	wasm = binary.AppendUvarint(wasm, uint64(len(code)))
	wasm = append(wasm, code...)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), wasm, 0o666))
}
