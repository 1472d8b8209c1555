package sandbox

import (
	"context"
	"os"
	"testing"
	"time"
)

func TestProto(t *testing.T) {
	for name, wasm := range map[string][]byte{"go": goGuest(t), "c": cGuest(t)} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, wasm)
			e := &env{}
			e.act = func(c *Call, n int32) {
				t0 := time.Now()
				img, err := c.Instance.Capture(nil)
				if err != nil {
					t.Error(err)
					return
				}
				t.Logf("capture %d of %d bytes, %v, runs %d", img.Resident(), img.Len(), time.Since(t0), 0)
				defer img.Release()
				s := w.prog.NewSlot()
				defer s.Close()
				for i := range 3 {
					te := &env{}
					ret, u, err := s.Run(context.Background(), TaskConfig{Image: img, Args: [3]uint32{0, 0, uint32(i)}, Env: te})
					t.Log(ret, u, err, te.said)
				}
				t0 = time.Now()
				for range 10000 {
					s.Run(context.Background(), TaskConfig{Image: img, Args: [3]uint32{0, 0, 0}})
				}
				t.Log(time.Since(t0) / 10000)
			}
			code, err := w.prog.Start(context.Background(), DriverConfig{Args: []string{"x", "empty"}, Stdout: os.Stdout, Stderr: os.Stderr, Env: e})
			t.Log(code, err, e.said)
		})
	}
}
