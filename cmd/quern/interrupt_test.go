//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestSecondInterruptLeavesAtOnce(t *testing.T) {
	for s, says := range map[os.Signal]string{
		os.Interrupt:    "interrupted",
		syscall.SIGTERM: "ended by SIGTERM",
		syscall.SIGHUP:  "ended, because the terminal has gone (SIGHUP)",
	} {
		p := startProcess(t, "", "stubborn")
		p.expect("ready")
		p.signal(s)
		p.expect(says)
		p.signal(os.Interrupt)
		if code, want := p.exitCode(), exitSignal+int(s.(syscall.Signal)); code != want {
			t.Errorf("%v: exit code %d, want %d; stderr: %s", s, code, want, p.stderr.String())
		}
	}
}

func TestNohup(t *testing.T) {
	p := startProcess(t, "", "sh", "-c", "trap '' HUP; exec stubborn")
	p.expect("ready")
	p.signal(syscall.SIGHUP)
	p.signal(syscall.SIGTERM)
	p.expect("ended by SIGTERM")
}

func TestSignalsEndAJobThatLoopsForEver(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "endless")
	if err := newProject(t.Context(), &console{out: new(bytes.Buffer)}, dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(endlessJob), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, v := range goSettings(t) { // before the cache is moved, or all of Go is compiled anew
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for s, says := range map[os.Signal]string{
		os.Interrupt:    "quern run: interrupted\n",
		syscall.SIGTERM: "quern run: ended by SIGTERM\n",
		syscall.SIGHUP:  "quern run: ended, because the terminal has gone (SIGHUP)\n",
	} {
		local := t.TempDir()
		p := startProcess(t, dir, "quern", "run", "--master", "local[2]", "--conf", "quern.local.dir="+local, ".")
		p.expect("running for ever")
		p.signal(s)
		if code, want := p.exitCode(), exitSignal+int(s.(syscall.Signal)); code != want {
			t.Errorf("%v: exit code %d, want %d", s, code, want)
		}
		if got := p.stderr.String(); !strings.Contains(got, says) {
			t.Errorf("%v: stderr is %q", s, got)
		}
		if left, err := os.ReadDir(local); len(left) > 0 || err != nil {
			t.Errorf("%v: quern.local.dir has %v, %v", s, left, err)
		}
	}
}

const endlessJob = `package main

import (
	"fmt"

	"github.com/quern-project/quern/sdk/quern"
)

func main() {
	ctx, err := quern.NewContext()
	if err != nil {
		panic(err)
	}
	fmt.Println("running for ever")
	n, err := ctx.Range(0, 8, 1).Map(func(i int64) int64 {
		for {
			i++
		}
	}).Count()
	fmt.Println(n, err)
}
`

// process is a running command whose standard output is read line by line.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout *bufio.Scanner
	stderr bytes.Buffer
}

func startProcess(t *testing.T, dir string, name string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(name, args...)}
	p.cmd.Dir = dir
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdout = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.cmd.Process.Kill() })
	return p
}

// expect reads one line.
func (p *process) expect(want string) {
	p.t.Helper()
	if !p.stdout.Scan() || p.stdout.Text() != want {
		p.t.Fatalf("stdout has the line %q, want %q; stderr: %s", p.stdout.Text(), want, p.stderr.String())
	}
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) exitCode() int {
	p.t.Helper()
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode()
}
