// Package sched gives tasks to executors. It takes task sets from engine/dag,
// starts their tasks in free slots, first come first served, runs failed tasks
// again, and reports back what became of each. It is Spark's TaskScheduler and
// TaskSetManager as a pure state machine: events go in through methods, and what
// is to be done comes out of Ready and Launch. There is no goroutine, clock,
// socket, file or random source inside.
//
// # Rules
//
// A task set that was submitted for an earlier job goes first, then the one of
// the stage with the smaller number. A set's tasks are spread evenly over the
// executors with free slots; a task that failed goes before those not yet tried,
// and, if it can, to another executor than the one it failed on.
//
// A failed task is tried again until Config.MaxFailures of its failures count (see
// msg.FailureKind.Counts); then its set is given up, its other tasks are killed,
// and dag is told. After a fetch failure nothing of the set is started any more,
// but its running tasks go on: what they deliver may be of use.
//
// A slot is free again only when the final status of its task has come, also
// when the task is killed: until then it may still be running. An executor whose
// task does not stop in time must be given up by the shell, which has the clock,
// with ExecutorLost. Then its tasks count as ended, and what it still says about
// them is ignored, like each second report of a task's end.
//
// # The caller's duties
//
// The shell around a Scheduler owns it together with a dag.Scheduler, on one
// goroutine. Whenever something has happened, or several things have, it
//
//  1. calls the method for it: ExecutorAdded, ExecutorLost, or StatusUpdate for
//     each message from an executor.
//  2. calls Ready, and does what it says in the order of its fields: Ended and
//     Failed go to the methods of dag.Scheduler of those names (TaskEnded,
//     TaskSetFailed), Kills to the executors.
//  3. calls Ready of the dag.Scheduler, gives its Submit, Cancel and Done to the
//     methods of those names here, and goes back to 2 until both have nothing more.
//  4. calls Launch, and sends the tasks to their executors, with Task.Text filled in
//     from the graph (TextInputs). Not earlier: a task that ended may have made
//     others superfluous.
//
// Taking all messages that are there before step 2 makes larger batches and is
// cheaper, but never needed.
package sched
