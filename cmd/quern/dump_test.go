package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestADumpIsCutToItsFirstGoroutine(t *testing.T) {
	const (
		first = "goroutine 1 gp=0x3021c0 m=0 [running]:\nruntime.throw({0xc5b6, 0xd})\n\t/go/panic.go:1243\nmain.main()\n\t/job/main.go:19\n"
		other = "goroutine 2 gp=0x1 m=nil [force gc (idle)]:\nruntime.gopark(0x1)\n\t/go/proc.go:474 +0x21\n"
	)
	for _, c := range []struct{ name, printed, want string }{
		{"no dump", "a\n\nb", "a\n\nb"},
		{"text that looks like one", "panic: mine\n\ngoroutines are good\n\n" + other + "\n" + other, "panic: mine\n\ngoroutines are good\n\n" + other + "[goroutines left out: 1; --verbose shows them]\n"},
		{"stacks that nothing has led to", other + "\n" + other + "\nx", other + "\n" + other + "\nx"},
		{"one goroutine", "panic: x\n\ty\n\n" + first, "panic: x\n\ty\n\n" + first},
		{"three goroutines", "runtime: out of memory\nfatal error: out of memory\n\n" + first + "\n" + other + "\n" + other,
			"runtime: out of memory\nfatal error: out of memory\n\n" + first + "[goroutines left out: 2; --verbose shows them]\n"},
		{"text behind it", "panic: x\n\n" + first + "\n" + other + "\ngo on\n\n" + other + "\n" + other,
			"panic: x\n\n" + first + "[goroutines left out: 1; --verbose shows them]\ngo on\n\n" + other + "\n" + other},
		{"text behind one goroutine", "panic: x\n\n" + first + "\n\ngoroutine count: 3\n", "panic: x\n\n" + first + "\n\ngoroutine count: 3\n"},
		{"an end in the middle", "panic: x\n\n" + first + "\ngorout", "panic: x\n\n" + first + "\ngorout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, at := range []int{1, 3, 1000} { // bytes written at once
				var out bytes.Buffer
				d := &dumpCutter{out: &out}
				for rest := c.printed; rest != ""; {
					n := min(at, len(rest))
					if k, err := d.Write([]byte(rest[:n])); k != n || err != nil {
						t.Fatalf("Write answers %d, %v", k, err)
					}
					rest = rest[n:]
				}
				if err := d.close(); err != nil {
					t.Fatal(err)
				}
				if out.String() != c.want {
					t.Errorf("%d at once: printed\n%s\nwant\n%s", at, out.String(), c.want)
				}
			}
		})
	}
}

func TestTextPassesAtOnce(t *testing.T) {
	var out bytes.Buffer
	d := &dumpCutter{out: &out}
	long := strings.Repeat("x", 3*lineIsEnough)
	for _, s := range []string{"name? ", "panic: no\n", "again? ", "yes\n", long, long + "\n"} {
		out.Reset()
		if _, err := d.Write([]byte(s)); err != nil || out.String() != s {
			t.Errorf("of %q passed %q, %v", s, out.String(), err)
		}
	}
	for range 100 {
		d.Write([]byte("panic: x\n\ngoroutine 1 [running]:\n\ngoroutine " + long))
	}
	if len(d.line) > 4*lineIsEnough {
		t.Errorf("%d bytes are kept", len(d.line))
	}
}

// FuzzDumpCutter cuts whatever a driver prints.
func FuzzDumpCutter(f *testing.F) {
	f.Add("panic: x\n\ngoroutine 1 [running]:\nmain.main()\n\ngoroutine 2 [idle]:\nf\n\ng", uint8(3))
	f.Add("fatal error: x\ngoroutine 1 []:\n\n\ngoroutine 7 []:\n", uint8(1))
	f.Fuzz(func(t *testing.T, printed string, at uint8) {
		cut := func(at int) string {
			var out bytes.Buffer
			d := &dumpCutter{out: &out}
			for rest := printed; rest != ""; rest = rest[min(at, len(rest)):] {
				d.Write([]byte(rest[:min(at, len(rest))]))
			}
			d.close()
			return out.String()
		}
		whole := cut(len(printed) + 1)
		if parts := cut(int(at) + 1); parts != whole {
			t.Fatalf("%q becomes %q in one piece, %q in pieces of %d", printed, whole, parts, at+1)
		}
		if !strings.Contains(whole, "[goroutines left out") && whole != printed {
			t.Fatalf("%q became %q", printed, whole)
		}
	})
}
