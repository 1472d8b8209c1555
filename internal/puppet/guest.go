package puppet

import (
	"encoding/binary"
	"iter"

	"github.com/quern-project/quern/wasmhost/sandbox"
)

// Guest is a run of the puppet as its script sees it. Its methods make the guest
// act; those that do not return to the guest end the script, too.
type Guest struct {
	call   *sandbox.Call
	yield  func(command) bool
	result int64
	answer int64

	next func() (command, bool)
	stop func()
}

// command is what the guest is told, as puppet.c reads it.
type command struct {
	op   Operation
	args [4]uint32
}

// Operation is a host function.
type Operation uint32

// The operations, as in puppet.c.
const (
	opEnd Operation = iota
	ContextOpen
	ConfGet
	RDDDefine
	JobRun
	JobNext
	JobClose
	TaskInfo
	PortOpen
	PortRead
	PortWrite
	PortClose
	TaskFail
	LastError
	Log
	opSpin
	opGrow
	opTrap
	opRecurse
	opExit
	opPrint
)

// gone ends a script whose guest has ended.
type gone struct{}

// Call has the guest call a host function and answers its result.
func (g *Guest) Call(function Operation, args ...uint32) int64 {
	c := command{op: function}
	copy(c.args[:], args)
	if !g.yield(c) {
		panic(gone{})
	}
	return g.result
}

// Spin loops for ever.
func (g *Guest) Spin() { g.Call(opSpin) }

// Grow asks for more memory, in pages of 64 KiB, and answers the number of pages
// before, or -1 if there is no more.
func (g *Guest) Grow(pages uint32) int32 { return int32(g.Call(opGrow, pages)) }

// Trap executes an instruction that cannot be executed.
func (g *Guest) Trap() { g.Call(opTrap) }

// Recurse calls itself for ever.
func (g *Guest) Recurse() { g.Call(opRecurse) }

// Exit ends the program with a code.
func (g *Guest) Exit(code uint32) { g.Call(opExit, code) }

// scratch is an address that the guest does not use itself. The stack lies below,
// from 64 KiB down, and the data above that is small.
const scratch = 100 << 10

// Put writes bytes into the guest's memory and answers their address and length.
// The next Put may write over them.
func (g *Guest) Put(b []byte) (pointer, length uint32) {
	m, ok := g.call.Bytes(scratch, uint32(len(b)))
	if !ok {
		panic("puppet: no room for so much in the guest's memory: let it grow")
	}
	copy(m, b)
	return scratch, uint32(len(b))
}

// Room is an address in the guest's memory with at least 16 KiB behind it.
func (g *Guest) Room() uint32 { return scratch }

// Get copies a part of the guest's memory.
func (g *Guest) Get(pointer, length uint32) []byte {
	m, ok := g.call.Bytes(pointer, length)
	if !ok {
		panic("puppet: that is outside of the guest's memory")
	}
	return append([]byte(nil), m...)
}

// Memory is the guest's whole memory, valid until it acts again.
func (g *Guest) Memory() []byte { return g.call.Memory() }

// Print writes text to standard output (1) or standard error (2).
func (g *Guest) Print(fd uint32, text string) {
	p, n := g.Put(append(make([]byte, 16), text...))
	v := binary.LittleEndian.AppendUint32(nil, p+16)
	v = binary.LittleEndian.AppendUint32(v, n-16)
	copy(g.Memory()[p:], v)
	g.Call(opPrint, fd, p, 1, p+8)
}

// LastError asks for the text of the last failure.
func (g *Guest) LastError() string {
	n := g.Call(LastError, g.Room(), 16<<10)
	return string(g.Get(g.Room(), uint32(min(n, 16<<10))))
}

// begin makes a script ready to run.
func begin(script Script) *Guest {
	g := new(Guest)
	g.next, g.stop = iter.Pull(func(yield func(command) bool) {
		g.yield = yield
		defer func() {
			if r := recover(); r != nil && r != (gone{}) {
				panic(r)
			}
		}()
		g.answer = script(g)
	})
	return g
}

// nextCommand is the host function with which the guest asks what to do.
func (w *World) nextCommand(c *sandbox.Call, stack []uint64) {
	w.mu.Lock()
	g := w.runs[c.Instance]
	if g == nil {
		g = begin(w.script(c.Env))
		w.runs[c.Instance] = g
	}
	w.mu.Unlock()
	g.call = c
	cmd, more := g.next()
	if !more {
		cmd = command{opEnd, [4]uint32{uint32(g.answer), uint32(g.answer >> 32)}}
		w.mu.Lock()
		delete(w.runs, c.Instance)
		w.mu.Unlock()
	}
	b, ok := c.Bytes(uint32(stack[0]), 20)
	if !ok {
		panic("puppet: no room for a command")
	}
	binary.LittleEndian.PutUint32(b, uint32(cmd.op))
	for i, a := range cmd.args {
		binary.LittleEndian.PutUint32(b[4+4*i:], a)
	}
}

// report is the host function with which the guest tells a result.
func (w *World) report(c *sandbox.Call, stack []uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs[c.Instance].result = int64(stack[0])
}

// script is what a run is to do.
func (w *World) script(env any) Script {
	if e, ok := env.(*imageEnv); ok {
		return func(g *Guest) int64 {
			e.image, e.err = g.call.Instance.Capture(nil)
			return 0
		}
	}
	return w.choose(env)
}
