package hostcall

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"strings"

	"github.com/quern-project/quern/sdk/abi"
	"github.com/quern-project/quern/wasmhost/sandbox"
)

func taskInfo(c *sandbox.Call, e *Env, stack []uint64) int64 {
	buf, err := bytes(c, stack, 0)
	if err != nil {
		return e.fail(err)
	}
	words := e.Task.Info()
	if len(buf) >= 8*len(words) {
		for i, w := range words {
			binary.LittleEndian.PutUint64(buf[8*i:], w)
		}
	}
	return int64(8 * len(words))
}

func portOpen(c *sandbox.Call, e *Env, stack []uint64) int64 {
	port, err := e.Task.OpenPort(abi.PortKind(uint32(stack[0])), uint32(stack[1]), int(int32(stack[2])))
	if err != nil {
		return e.fail(err)
	}
	return int64(port)
}

func portRead(c *sandbox.Call, e *Env, stack []uint64) int64 {
	buf, err := bytes(c, stack, 1)
	if err != nil {
		return e.fail(err)
	}
	n, err := e.Task.ReadPort(uint32(stack[0]), buf)
	return e.read(n, err)
}

func portWrite(c *sandbox.Call, e *Env, stack []uint64) int64 {
	b, err := bytes(c, stack, 1)
	if err != nil {
		return e.fail(err)
	}
	if err := e.Task.WritePort(uint32(stack[0]), b); err != nil {
		return e.fail(err)
	}
	return 0
}

func portClose(c *sandbox.Call, e *Env, stack []uint64) int64 {
	if err := e.Task.ClosePort(uint32(stack[0])); err != nil {
		return e.fail(err)
	}
	return 0
}

// maxText bounds what a guest can make the host keep or log in one call.
const maxText = 64 << 10

func taskFail(c *sandbox.Call, e *Env, stack []uint64) int64 {
	b, err := bytes(c, stack, 1)
	if err != nil {
		return e.fail(err)
	}
	e.Task.Fail(abi.Code(int32(stack[0])), text(b))
	return 0
}

func lastError(c *sandbox.Call, e *Env, stack []uint64) int64 {
	buf, err := bytes(c, stack, 0)
	if err != nil {
		return int64(abi.ErrBadArgument)
	}
	return copyOut(buf, e.lastError)
}

func logText(c *sandbox.Call, e *Env, stack []uint64) int64 {
	b, err := bytes(c, stack, 1)
	if err != nil {
		return e.fail(err)
	}
	if e.Log != nil {
		e.Log.Log(context.Background(), logLevel(uint32(stack[0])), text(b))
	}
	return 0
}

func logLevel(level uint32) slog.Level {
	switch level {
	case abi.LogDebug:
		return slog.LevelDebug
	case abi.LogInfo:
		return slog.LevelInfo
	case abi.LogWarn:
		return slog.LevelWarn
	}
	return slog.LevelError
}

// text copies a guest's text, bounded and valid UTF-8.
func text(b []byte) string {
	if len(b) > maxText {
		return strings.ToValidUTF8(string(b[:maxText]), "�") + fmt.Sprintf(" … (%d bytes more)", len(b)-maxText)
	}
	return strings.ToValidUTF8(string(b), "�")
}
