package sandbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quern-project/quern/wasmhost/linearmem"
)

// wasiGuest is a guest whose calls of WASI the test makes.
type wasiGuest struct {
	*testing.T
	*Instance
}

// newWASIGuest makes one with a memory of 16 pages.
func newWASIGuest(t *testing.T, ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) wasiGuest {
	t.Helper()
	in, err := newWorld(t, starting()).prog.newInstance(context.Background(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.close)
	if _, ok := in.mod.Memory().Grow(15); !ok {
		t.Fatal("no memory")
	}
	in.sys.begin(stdin, stdout, stderr, [32]byte{1}, nil)
	if err := in.begin(ctx, nil, linearmem.Limit{}); err != nil {
		t.Fatal(err)
	}
	return wasiGuest{t, in}
}

// try calls a function of WASI and answers the error number, or how the run ended.
func (g wasiGuest) try(name string, args ...uint64) (errno uint32, end error) {
	g.Helper()
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *stop:
			end = r.err
		default:
			panic(r)
		}
	}()
	stack := slices.Clone(args)
	wasiCallOf(name).goFunction(name)(&g.run, stack)
	return uint32(stack[0]), nil
}

// succeeds calls a function and answers the word at 0, where the tests let
// functions put their results.
func (g wasiGuest) succeeds(name string, args ...uint64) uint32 {
	g.Helper()
	if errno, err := g.try(name, args...); errno != 0 || err != nil {
		g.Errorf("%s%d: errno %d, %v", name, args, errno, err)
	}
	return g.word(0)
}

func (g wasiGuest) word(at uint32) uint32 { return binary.LittleEndian.Uint32(g.mem.Bytes()[at:]) }

func (g wasiGuest) put(at uint32, words ...uint32) {
	for i, w := range words {
		binary.LittleEndian.PutUint32(g.mem.Bytes()[at+4*uint32(i):], w)
	}
}

func TestWASIStreams(t *testing.T) {
	var out, errs bytes.Buffer
	g := newWASIGuest(t, context.Background(), strings.NewReader("input"), &out, &errs)
	const list, text = 16, 256
	copy(g.mem.Bytes()[text:], "hello, world")
	g.put(list, text, 7, text+1, 0, text+7, 5)
	if n := g.succeeds("fd_write", 1, list, 3, 0); n != 12 || out.String() != "hello, world" {
		t.Errorf("%d bytes, %q", n, &out)
	}
	if n := g.succeeds("fd_write", 2, list, 1, 0); n != 7 || errs.String() != "hello, " {
		t.Errorf("%d bytes, %q", n, &errs)
	}
	g.put(list, text, 0, text, 3)
	if n := g.succeeds("fd_read", 0, list, 2, 0); n != 3 || string(g.mem.Bytes()[text:text+3]) != "inp" {
		t.Errorf("%d bytes", n)
	}
	if n := g.succeeds("fd_read", 0, list, 2, 0); n != 2 {
		t.Errorf("%d bytes of the rest", n)
	}
	if n := g.succeeds("fd_read", 0, list, 2, 0); n != 0 {
		t.Errorf("%d bytes at the end", n)
	}
	failure := errors.New("the disk is full")
	g.sys.begin(nil, writer(func([]byte) (int, error) { return 0, failure }), nil, [32]byte{}, nil)
	if errno, err := g.try("fd_write", 1, list, 2, 0); errno != wasiIO || err != nil {
		t.Errorf("errno %d, %v", errno, err)
	}
}

func TestWASIRandom(t *testing.T) {
	draw := func(sizes ...uint64) []byte {
		g := newWASIGuest(t, context.Background(), nil, nil, nil)
		at := uint64(100)
		for _, n := range sizes {
			g.try("random_get", at, n)
			at += n
		}
		if b := g.mem.Bytes()[at:]; !bytes.Equal(b, make([]byte, len(b))) {
			t.Errorf("%d bytes from 100 wrote beyond", sizes)
		}
		return bytes.Clone(g.mem.Bytes()[100:at])
	}
	const n = 5*wasiPiece + 24
	one := draw(n)
	if !bytes.Equal(one, draw(n)) || !bytes.Equal(one, draw(wasiPiece-8, n-wasiPiece+8)) {
		t.Error("the same seed gave other numbers")
	}
	if bytes.Contains(one, make([]byte, 16)) {
		t.Error("a part is missing")
	}
}

func TestWASIRefusals(t *testing.T) {
	g := newWASIGuest(t, context.Background(), nil, nil, nil)
	end := uint64(g.mem.Len())
	g.put(16, 0, uint32(end)+1)
	g.put(32, uint32(end)-1, 2)
	g.put(64+8, 9)
	for _, test := range []struct {
		name string
		args []uint64
		want uint32
	}{
		{"fd_write", []uint64{0, 32, 0, 0}, wasiBadFD},
		{"fd_write", []uint64{3, 32, 0, 0}, wasiBadFD},
		{"fd_write", []uint64{1, 32, maxVectors + 1, 0}, wasiInvalid},
		{"fd_write", []uint64{1, 32, 1 << 29, 0}, wasiInvalid},
		{"fd_write", []uint64{1, end - 4, 1, 0}, wasiFault},
		{"fd_write", []uint64{1, 16, 1, 0}, wasiFault},
		{"fd_write", []uint64{1, 32, 1, 0}, wasiFault},
		{"fd_write", []uint64{1, 32, 0, end - 3}, wasiFault},
		{"fd_read", []uint64{1, 32, 0, 0}, wasiBadFD},
		{"fd_read", []uint64{0, 32, 1, 0}, wasiFault},
		{"fd_read", []uint64{0, 32, maxVectors + 1, 0}, wasiInvalid},
		{"fd_pread", []uint64{0, 32, 0, 0, 0}, wasiSeek},
		{"fd_pwrite", []uint64{4, 32, 0, 0, 0}, wasiBadFD},
		{"fd_close", []uint64{1}, wasiOK},
		{"fd_close", []uint64{3}, wasiBadFD},
		{"fd_renumber", []uint64{1, 2}, wasiNotSup},
		{"random_get", []uint64{1, end}, wasiFault},
		{"random_get", []uint64{math.MaxUint32, math.MaxUint32}, wasiFault},
		{"poll_oneoff", []uint64{64, 1024, 0, 0}, wasiInvalid},
		{"poll_oneoff", []uint64{64, 1024, maxVectors + 1, 0}, wasiInvalid},
		{"poll_oneoff", []uint64{64, 1024, 89478486, 0}, wasiInvalid}, // 48 times that is 32 more than 1<<32
		{"poll_oneoff", []uint64{end - 47, 1024, 1, 0}, wasiFault},
		{"poll_oneoff", []uint64{128, end - 31, 1, 0}, wasiFault},
		{"poll_oneoff", []uint64{64, 1024, 1, 0}, wasiInvalid},
		{"path_open", []uint64{3, 0, 0, end, 0, 0, 0, 0, 0}, wasiBadFD},
		{"path_rename", []uint64{1, 0, end, 1, 0, end}, wasiNotDir},
	} {
		if errno, err := g.try(test.name, test.args...); errno != test.want || err != nil {
			t.Errorf("%s%d: errno %d, %v; want %d", test.name, test.args, errno, err, test.want)
		}
	}
}

func TestWASIPoll(t *testing.T) {
	g := newWASIGuest(t, context.Background(), nil, nil, nil)
	const subs, events = 256, 1024
	// subscribe writes subscription i: for a clock, its number, the time and whether
	// that is absolute; else a file.
	subscribe := func(i int, kind byte, what uint32, ns uint64, flags uint16) {
		b := g.mem.Bytes()[subs+i*subscriptionSize:][:subscriptionSize]
		clear(b)
		b[0], b[8] = byte(i+1), kind
		binary.LittleEndian.PutUint32(b[16:], what)
		binary.LittleEndian.PutUint64(b[24:], ns)
		binary.LittleEndian.PutUint16(b[40:], flags)
	}
	// check polls the first n and compares the events (user data, error, kind) and
	// the least time that must have passed.
	check := func(n uint64, least time.Duration, want ...[3]uint32) {
		t.Helper()
		start := time.Now()
		count := g.succeeds("poll_oneoff", subs, events, n, 0)
		took := time.Since(start)
		var have [][3]uint32
		for i := range count {
			at := events + i*eventSize
			have = append(have, [3]uint32{g.word(at), g.word(at+8) & 0xffff, g.word(at+8) >> 16})
		}
		if !slices.Equal(have, want) || took < least {
			t.Errorf("happened %v after %v, want %v after %v", have, took, want, least)
		}
	}
	const ms = uint64(time.Millisecond)
	first := [3]uint32{1, 0, pollClock}
	subscribe(0, pollClock, 1, 20*ms, 0)
	subscribe(1, pollClock, 0, 3600_000*ms, 0)
	check(2, 20*time.Millisecond, first)
	subscribe(0, pollClock, 0, uint64(time.Now().UnixNano())+50*ms, 1)
	check(2, time.Millisecond, first)
	subscribe(0, pollClock, 1, uint64(g.sys.nanotime())+50*ms, 1)
	check(2, time.Millisecond, first)
	subscribe(0, pollClock, 0, 1, 1) // long ago
	check(2, 0, first)
	subscribe(0, pollClock, 0, math.MaxUint64, 0)
	subscribe(2, pollRead, 0, 0, 0)
	subscribe(3, pollWrite, 1, 0, 0)
	subscribe(4, pollRead, 7, 0, 0)
	check(5, 0, [3]uint32{3, 0, pollRead}, [3]uint32{4, 0, pollWrite}, [3]uint32{5, wasiBadFD, pollRead})
}

// TestWASIEndsWhenKilled: calls that would take long, or for ever, end soon after
// the run is killed.
func TestWASIEndsWhenKilled(t *testing.T) {
	for _, name := range []string{"fd_write", "random_get", "poll_oneoff"} {
		reason := errors.New("the user pressed a key")
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		written := 0
		g := newWASIGuest(t, ctx, nil, writer(func(b []byte) (int, error) {
			if written += len(b); written > 1<<20 {
				cancel(reason)
			}
			return len(b), nil
		}), nil)
		var args []uint64
		switch name {
		case "fd_write": // 1 GiB
			for i := range uint32(maxVectors) {
				g.put(16+8*i, 0, uint32(g.mem.Len()))
			}
			args = []uint64{1, 16, maxVectors, 0}
		case "random_get":
			cancel(reason)
			args = []uint64{wasiPiece, wasiPiece * 10}
		case "poll_oneoff": // a clock in 292 years
			g.put(16+24, math.MaxUint32, math.MaxInt32)
			time.AfterFunc(20*time.Millisecond, func() { cancel(reason) })
			args = []uint64{16, 1 << 16, 1, 0}
		}
		_, err := g.try(name, args...)
		if _, ok := errors.AsType[*KilledError](err); !ok || !errors.Is(err, reason) {
			t.Errorf("%s: %v", name, err)
		}
		if written > 2<<20 {
			t.Errorf("%s has written %d bytes", name, written)
		}
		if last := g.mem.Bytes()[wasiPiece*10:][:wasiPiece]; name == "random_get" && !bytes.Equal(last, make([]byte, wasiPiece)) {
			t.Error("random_get went on to the end")
		}
	}
}

type writer func(b []byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }
