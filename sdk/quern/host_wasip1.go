package quern

import (
	"unsafe"

	"github.com/quern-project/quern/sdk/abi"
)

// The engine's host functions. Names after "quern" are those of sdk/abi.

//go:wasmimport quern context_open
func wasmContextOpen(ptr unsafe.Pointer, n uint32) int64

//go:wasmimport quern conf_get
func wasmConfGet(kptr unsafe.Pointer, klen uint32, ptr unsafe.Pointer, n uint32) int64

//go:wasmimport quern rdd_define
func wasmRDDDefine(ptr unsafe.Pointer, n uint32) int64

//go:wasmimport quern job_run
func wasmJobRun(ptr unsafe.Pointer, n uint32) int64

//go:wasmimport quern job_next
func wasmJobNext(job uint32, ptr unsafe.Pointer, n uint32) int64

//go:wasmimport quern job_close
func wasmJobClose(job uint32) int64

//go:wasmimport quern task_info
func wasmTaskInfo(ptr unsafe.Pointer, n uint32) int64

//go:wasmimport quern port_open
func wasmPortOpen(kind, id, partition uint32) int64

//go:wasmimport quern port_read
func wasmPortRead(port uint32, ptr unsafe.Pointer, n uint32) int64

//go:wasmimport quern port_write
func wasmPortWrite(port uint32, ptr unsafe.Pointer, n uint32) int64

//go:wasmimport quern port_close
func wasmPortClose(port uint32) int64

//go:wasmimport quern task_fail
func wasmTaskFail(code int32, ptr unsafe.Pointer, n uint32) int64

//go:wasmimport quern last_error
func wasmLastError(ptr unsafe.Pointer, n uint32) int64

//go:wasmimport quern log
func wasmLog(level uint32, ptr unsafe.Pointer, n uint32) int64

// wasmYield is the safepoint. The host inserts the calls; see taskEntry.
//
//go:wasmimport quern yield
func wasmYield()

// taskEntry is what the host calls in a clone of the driver's memory.
//
//go:wasmexport quern_task_1
func taskEntry(kind, id, partition uint32) int64 {
	fork.cloned.Store(true) // before any other goroutine can run
	if abi.TaskKind(kind) > abi.TaskShuffle {
		// No such task. The call is here so that the linker keeps the import:
		// the host inserts calls of it into loops and functions.
		wasmYield()
		hostTaskFail(abi.ErrVersion, "this module's SDK knows no such kind of task; rebuild the job with this engine's SDK")
		return int64(abi.ErrVersion)
	}
	return runTask(abi.TaskKind(kind), id, partition)
}

func bytesPtr(b []byte) (unsafe.Pointer, uint32) {
	return unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b))
}

func textPtr(s string) (unsafe.Pointer, uint32) {
	return unsafe.Pointer(unsafe.StringData(s)), uint32(len(s))
}

func hostContextOpen(d *abi.ContextDesc) int64 {
	return inDriver(wasmContextOpen(bytesPtr(d.AppendCBOR(nil))))
}

func hostConfGet(key string, buf []byte) int64 {
	kp, kn := textPtr(key)
	p, n := bytesPtr(buf)
	return inDriver(wasmConfGet(kp, kn, p, n))
}

func hostRDDDefine(d *abi.RDDDesc) int64 {
	return inDriver(wasmRDDDefine(bytesPtr(d.AppendCBOR(nil))))
}

func hostJobRun(d *abi.JobDesc) int64 {
	p, n := bytesPtr(d.AppendCBOR(nil))
	noteFork()
	return inDriver(wasmJobRun(p, n))
}

func hostJobNext(job int64, buf []byte) int64 {
	p, n := bytesPtr(buf)
	return inDriver(wasmJobNext(uint32(job), p, n))
}

func hostJobClose(job int64) int64 { return inDriver(wasmJobClose(uint32(job))) }

func hostTaskInfo(buf []byte) int64 { return wasmTaskInfo(bytesPtr(buf)) }

func hostPortOpen(kind abi.PortKind, id uint32, partition int) int64 {
	return wasmPortOpen(uint32(kind), id, uint32(partition))
}

func hostPortRead(port int64, buf []byte) int64 {
	p, n := bytesPtr(buf)
	return wasmPortRead(uint32(port), p, n)
}

func hostPortWrite(port int64, b []byte) int64 {
	p, n := bytesPtr(b)
	return wasmPortWrite(uint32(port), p, n)
}

func hostPortClose(port int64) int64 { return wasmPortClose(uint32(port)) }

func hostTaskFail(code abi.Code, text string) int64 {
	p, n := textPtr(text)
	return wasmTaskFail(int32(code), p, n)
}

func hostLastError(buf []byte) int64 { return wasmLastError(bytesPtr(buf)) }

func hostLog(level int, text string) int64 {
	p, n := textPtr(text)
	return wasmLog(uint32(level), p, n)
}
