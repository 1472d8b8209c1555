// Package quern is the Go SDK of Quern: Spark-shaped jobs as ordinary programs.
//
// A job is a main package. It opens a Context, builds RDDs with transformations,
// to which it passes plain closures, and runs actions, which return values:
//
//	func main() {
//		ctx, err := quern.NewContext(quern.AppName("word count"))
//		if err != nil {
//			log.Fatal(err)
//		}
//		counts := ctx.TextFile(os.Args[1]).
//			FlatMap(strings.Fields).
//			MapToPair(func(w string) (string, int64) { return w, 1 }).
//			ReduceByKey(func(a, b int64) int64 { return a + b })
//		top, err := counts.Top(10, func(a, b quern.Pair[string, int64]) int {
//			return cmp.Compare(a.Value, b.Value)
//		})
//		if err != nil {
//			log.Fatal(err)
//		}
//		for _, p := range top {
//			fmt.Println(p.Key, p.Value)
//		}
//	}
//
// "quern run" compiles it to WebAssembly and runs it in sandboxes, on all cores
// of the machine. The same program, compiled for the native platform, evaluates
// in its own process, one partition after the other, so that go test and a
// debugger work on it.
//
// # RDDs
//
// RDD[T] and PairRDD[K, V] are values that describe a computation in partitions.
// Transformations (Map, Filter, Join, ...) are lazy; actions (Count, Collect,
// SaveAsTextFile, ...) run a job and wait for it. Names are Spark's. Where the
// number of partitions of a result can be given, it is the last, optional
// argument; left out, it is that of the largest parent, and for sources the
// configuration quern.default.parallelism. It never depends on the machine, and
// so neither do results: the same input gives the same bytes, whatever the
// number of executors, and whatever is retried.
//
// A mistake in a transformation is kept in the RDD and returned by the action,
// with the file and line of the transformation. RDD.Err returns it at once.
//
// # Fork rules
//
// A task is a copy of the driver, made when the action starts, as by fork(2):
//
//   - A closure may capture anything. It sees its variables as they are when the
//     action starts.
//   - What a task changes, it changes in its copy. Neither the driver nor other
//     tasks see it. Results travel through actions alone.
//   - Transformations and actions belong to the driver. Called in a closure they
//     return an error wrapping ErrInTask. Other goroutines of the driver exist in
//     the copy, too; one that calls the engine there is parked for good.
//   - A lock that the driver holds during an action is held in the task.
//   - A panic, os.Exit and log.Fatal end the task, never the driver. runtime.Goexit
//     fails the task.
//   - The top-level functions of math/rand and math/rand/v2 are seeded anew in
//     each task, from the job, stage and partition: each task draws numbers of its
//     own, and a retry draws the same ones. Generators made in the driver are
//     copied as they are.
//   - Open files do not travel. Standard output of a task goes to its log.
//
// On the native platform tasks share the process, so the copying does not happen:
// there a closure's changes to captured variables stay, and the top-level
// functions of math/rand are Go's own, seeded anew in each process.
//
// # Elements
//
// Inside a task elements may have any type. Where they move, in a shuffle or to
// the driver, they are encoded: all basic types, strings, slices, arrays, maps,
// pointers and structs of them, unexported fields included, and types with
// MarshalBinary and UnmarshalBinary, such as time.Time. Interfaces, channels and
// functions cannot move; the error names the type and the field, and comes before
// any task runs. Values that contain themselves (cycles) fail the task.
//
// Strings read from text or a shuffle share memory with the batch that they came
// in, 64 KiB as a rule. To keep a few of many, use strings.Clone.
//
// # Keys
//
// Keys are compared by an encoding that keeps their order: numbers by value,
// strings by bytes, arrays and structs by their parts in turn, false before true.
// -0 is 0, and all NaN are one, the largest. Slices count as keys where Go lets
// them be (Distinct, SortBy). Maps, pointers and interfaces cannot be keys.
// Operations that gather equal keys (ReduceByKey, GroupByKey, Join, PartitionBy)
// leave each partition in the order of its keys, and joins of what is already
// partitioned alike do not move it again.
package quern
