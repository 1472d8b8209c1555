package sandbox

import (
	"context"
	"encoding/binary"
	"io"
	"math"
	"strings"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// What a guest asks of WASI must neither take long without a look at whether the
// run was killed, nor memory of the host's in proportion to what it says: one
// fd_write may name all of the guest's memory a hundred million times. So the
// functions that take lengths are not wazero's. They know only the three
// standard streams.

// Error numbers of WASI.
const (
	wasiOK      = 0
	wasiBadFD   = 8
	wasiFault   = 21
	wasiInvalid = 28
	wasiIO      = 29
	wasiNotDir  = 54
	wasiNotSup  = 58
	wasiSeek    = 70
)

const (
	// maxVectors is the largest number of buffers, or of events, of one call.
	maxVectors = 1024
	// wasiPiece is the number of bytes that are written, or made, between two looks
	// at whether the run was killed.
	wasiPiece = 64 << 10
)

// wasiCall is a function of WASI. It answers an error number.
type wasiCall func(in *Instance, args []uint64) uint32

// wasiCallOf is what takes the place of wazero's function, if anything does. Those
// of paths all fail, because there are none.
func wasiCallOf(name string) wasiCall {
	switch name {
	case "fd_write":
		return fdWrite
	case "fd_read":
		return fdRead
	case "random_get":
		return randomGet
	case "poll_oneoff":
		return pollOneoff
	case "fd_pread", "fd_pwrite":
		return failing(wasiSeek)
	case "fd_renumber":
		return failing(wasiNotSup)
	case "fd_close":
		// The table of open files belongs to the instance, which outlives a task.
		// So that a task that closes its standard output does not close the next
		// one's, that table never changes.
		return failing(wasiOK)
	}
	if strings.HasPrefix(name, "path_") {
		return failing(wasiNotDir)
	}
	return nil
}

// failing answers an error number for the standard streams, and that there is no
// such file for others.
func failing(errno uint32) wasiCall {
	return func(_ *Instance, args []uint64) uint32 {
		if !standard(args[0]) {
			return wasiBadFD
		}
		return errno
	}
}

func standard(fd uint64) bool { return uint32(fd) <= 2 }

// goFunction is call as wazero wants it.
func (call wasiCall) goFunction(name string) api.GoFunc {
	return func(ctx context.Context, stack []uint64) {
		in := ctx.(*runContext).instance
		defer hostPanic(name)
		stack[0] = uint64(call(in, stack))
		in.checkKilled()
	}
}

// vectors are the buffers that ptr and n describe. ok is false when they are not
// in the guest's memory.
func (in *Instance) vectors(ptr, n uint64) (all [][]byte, errno uint32) {
	if uint32(n) > maxVectors {
		return nil, wasiInvalid
	}
	list, ok := in.call.Bytes(uint32(ptr), 8*uint32(n))
	if !ok {
		return nil, wasiFault
	}
	for ; len(list) > 0; list = list[8:] {
		b, ok := in.call.Bytes(binary.LittleEndian.Uint32(list), binary.LittleEndian.Uint32(list[4:]))
		if !ok {
			return nil, wasiFault
		}
		all = append(all, b)
	}
	return all, wasiOK
}

// putU32 writes to the guest's memory and answers the error number.
func (in *Instance) putU32(ptr uint64, v uint32) uint32 {
	b, ok := in.call.Bytes(uint32(ptr), 4)
	if !ok {
		return wasiFault
	}
	binary.LittleEndian.PutUint32(b, v)
	return wasiOK
}

func fdWrite(in *Instance, args []uint64) uint32 {
	w := in.sys.stdout
	switch uint32(args[0]) {
	case 1:
	case 2:
		w = in.sys.stderr
	default:
		return wasiBadFD
	}
	all, errno := in.vectors(args[1], args[2])
	if errno != wasiOK {
		return errno
	}
	total := uint32(0)
	for _, b := range all {
		for len(b) > 0 {
			piece := b[:min(len(b), wasiPiece)]
			b = b[len(piece):]
			in.checkKilled()
			if w != nil {
				if _, err := w.Write(piece); err != nil {
					return wasiIO
				}
			}
			total += uint32(len(piece))
		}
	}
	return in.putU32(args[3], total)
}

func fdRead(in *Instance, args []uint64) uint32 {
	if uint32(args[0]) != 0 {
		return wasiBadFD
	}
	all, errno := in.vectors(args[1], args[2])
	if errno != wasiOK {
		return errno
	}
	for _, b := range all {
		if len(b) > 0 {
			n, err := in.sys.read(b[:min(len(b), wasiPiece)])
			if n == 0 && err != nil && err != io.EOF {
				return wasiIO
			}
			return in.putU32(args[3], uint32(n))
		}
	}
	return in.putU32(args[3], 0)
}

func randomGet(in *Instance, args []uint64) uint32 {
	b, ok := in.call.Bytes(uint32(args[0]), uint32(args[1]))
	if !ok {
		return wasiFault
	}
	for len(b) > 0 {
		n := min(len(b), wasiPiece)
		in.sys.random.Read(b[:n])
		b = b[n:]
		in.checkKilled()
	}
	return wasiOK
}

// Layout and kinds of what poll_oneoff waits for and of the events it answers.
const (
	subscriptionSize = 48
	eventSize        = 32

	pollClock = 0
	pollRead  = 1
	pollWrite = 2
)

// pollOneoff waits until one of the things that it is told has happened. Standard
// streams are always ready: a read that has to wait does so by itself.
func pollOneoff(in *Instance, args []uint64) uint32 {
	n := uint32(args[2])
	if n == 0 || n > maxVectors {
		return wasiInvalid
	}
	subs, ok := in.call.Bytes(uint32(args[0]), n*subscriptionSize)
	if !ok {
		return wasiFault
	}
	if _, ok := in.call.Bytes(uint32(args[1]), n*eventSize); !ok {
		return wasiFault
	}
	type event struct {
		user  [8]byte
		kind  byte
		errno uint16
		wait  int64 // of a clock
	}
	events := make([]event, n)
	wait := int64(math.MaxInt64)
	for i := range events {
		s := subs[i*subscriptionSize:][:subscriptionSize]
		e := &events[i]
		e.user, e.kind = [8]byte(s), s[8]
		fd := binary.LittleEndian.Uint32(s[16:])
		switch e.kind {
		case pollClock:
			e.wait, ok = in.sys.until(fd, binary.LittleEndian.Uint64(s[24:]), binary.LittleEndian.Uint16(s[40:]))
			if !ok {
				return wasiInvalid
			}
		case pollRead, pollWrite:
			if !standard(uint64(fd)) || (fd == 0) != (e.kind == pollRead) {
				e.errno = wasiBadFD
			}
		default:
			return wasiInvalid
		}
		wait = min(wait, e.wait)
	}
	in.sys.nanosleep(wait)
	happened := uint32(0)
	for _, e := range events {
		if e.wait > wait {
			continue
		}
		// The guest's memory has not moved: nothing but the guest makes it grow.
		out, ok := in.call.Bytes(uint32(args[1])+happened*eventSize, eventSize)
		if !ok {
			return wasiFault
		}
		clear(out)
		copy(out, e.user[:])
		binary.LittleEndian.PutUint16(out[8:], e.errno)
		out[10] = e.kind
		happened++
	}
	return in.putU32(args[3], happened)
}

// until is how long it takes until a clock shows a time, or until a time has
// passed. There are the clocks of real time, 0, and monotonic ones.
func (s *system) until(clock uint32, t uint64, flags uint16) (ns int64, ok bool) {
	const absolute = 1
	t = min(t, math.MaxInt64)
	switch {
	case flags&^absolute != 0:
		return 0, false
	case flags == 0:
		return int64(t), true
	case clock == 0:
		return max(int64(t)-time.Now().UnixNano(), 0), true
	}
	return max(int64(t)-s.nanotime(), 0), true
}
