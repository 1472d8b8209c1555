package quern

// The boundary between the SDK and the engine. Everything above it is the same
// in a sandbox and on the native platform; below it stand two implementations
// with the same names and signatures:
//
//	host_wasip1.go  the engine's host functions (see sdk/abi and docs/abi.md)
//	native_*.go     the in-process evaluator, for go test and a debugger
//
// Results are those of the ABI: what is >= 0 is a result, what is < 0 is an
// abi.Code, and hostLastError has its text.
//
//	func hostContextOpen(d *abi.ContextDesc) int64
//	func hostConfGet(key string, buf []byte) int64
//	func hostRDDDefine(d *abi.RDDDesc) int64
//	func hostJobRun(d *abi.JobDesc) int64
//	func hostJobNext(job int64, buf []byte) int64
//	func hostJobClose(job int64) int64
//	func hostTaskInfo(buf []byte) int64
//	func hostPortOpen(kind abi.PortKind, id uint32, partition int) int64
//	func hostPortRead(port int64, buf []byte) int64
//	func hostPortWrite(port int64, b []byte) int64
//	func hostPortClose(port int64) int64
//	func hostTaskFail(code abi.Code, text string) int64
//	func hostLastError(buf []byte) int64
//	func hostLog(level int, text string) int64
//
// Buffers: hostJobNext and hostPortRead fill buf with as many whole batches or
// records as fit and answer their length. An answer above len(buf) is what the
// next one needs; nothing was written, and nothing is lost: call again with a
// larger buffer. hostConfGet, hostTaskInfo and hostLastError answer the whole
// length, too, and have written the value if that fits. Nothing passed in
// is kept after the call: hostPortWrite copies b.
//
// The host answers hostJobNext with one or more batches of PortResult, whole and
// in partition order. Results start with a header that makes them tell their
// partition and length (see action.go), so both "one batch a call" and "several
// joined" are right.
//
// The other way, the host enters the guest to run a task:
//
//	func runTask(kind abi.TaskKind, id uint32, partition uint32) int64
//
// which answers 0 or a negative abi.Code after having called hostTaskFail.
//
// One task runs at a time in one linear memory. The native evaluator keeps the
// same rule for the whole process (one task at a time, whatever the number of
// contexts and goroutines), because the running task is a variable of this
// package. It runs every task on a goroutine of its own, so that a closure that
// calls runtime.Goexit (t.FailNow, say) ends that goroutine alone; runTask has
// then called hostTaskFail but does not return.
