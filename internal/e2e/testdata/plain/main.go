// Command plain is a WebAssembly program that is not a job.
package main

func main() { println("hello") }
