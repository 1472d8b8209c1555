package driver

import (
	"context"
	"fmt"

	"github.com/quern-project/quern/engine/executor"
	"github.com/quern-project/quern/engine/msg"
	"github.com/quern-project/quern/net/wire"
	"github.com/quern-project/quern/wasmhost/image"
)

// local is the cluster of local mode: one executor in this process. Messages
// go from one side to the other by a function call, or, to prove that nothing
// else passes between them, encoded and decoded.
type local struct {
	executor *executor.Executor
	loop     *loop
	images   *images
	encode   bool
}

const localExecutor msg.ExecutorID = "local"

// carry passes a message from one side to the other.
func carry[T any](l *local, m T) T {
	if !l.encode {
		return m
	}
	b, err := wire.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("message %T does not encode: %v", m, err))
	}
	var out T
	if err := wire.Unmarshal(b, &out); err != nil {
		panic(fmt.Sprintf("message %T does not decode: %v", m, err))
	}
	return out
}

// The driver's side of the link.

func (l *local) launch(m msg.Launch) { l.executor.Launch(carry(l, m)) }
func (l *local) kill(m msg.Kill)     { l.executor.Kill(carry(l, m)) }
func (l *local) removeShuffles(m msg.RemoveShuffles) {
	l.executor.RemoveShuffles(carry(l, m))
}

// The executor's side: executor.DriverClient.

// Status implements executor.DriverClient.
func (l *local) Status(u msg.StatusUpdate) { l.loop.status(carry(l, u)) }

// MapOutputs implements executor.DriverClient.
func (l *local) MapOutputs(_ context.Context, r msg.MapOutputsRequest) (msg.MapOutputsReply, error) {
	reply, err := l.loop.mapOutputs(carry(l, r).Shuffle)
	if err != nil {
		return reply, err
	}
	return carry(l, reply), nil
}

// Image implements executor.DriverClient.
func (l *local) Image(_ context.Context, id msg.ImageID) (*image.Image, error) {
	return l.images.get(id)
}
