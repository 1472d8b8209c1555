package quern

import "fmt"

// Pair is a key with its value.
type Pair[K, V any] struct {
	Key   K
	Value V
}

// String formats the pair as "(key,value)", which is also how SaveAsTextFile
// writes it.
func (p Pair[K, V]) String() string { return fmt.Sprintf("(%v,%v)", p.Key, p.Value) }

// Option is a value that may be missing: the other side of an outer join.
type Option[T any] struct {
	value   T
	defined bool
}

// Some is an Option that holds v.
func Some[T any](v T) Option[T] { return Option[T]{v, true} }

// None is an Option that holds nothing.
func None[T any]() Option[T] { return Option[T]{} }

// Get returns the value and whether there is one.
func (o Option[T]) Get() (T, bool) { return o.value, o.defined }

// IsDefined says whether there is a value.
func (o Option[T]) IsDefined() bool { return o.defined }

// GetOrElse returns the value, or other if there is none.
func (o Option[T]) GetOrElse(other T) T {
	if o.defined {
		return o.value
	}
	return other
}

// String formats the option as "Some(value)" or "None".
func (o Option[T]) String() string {
	if o.defined {
		return fmt.Sprintf("Some(%v)", o.value)
	}
	return "None"
}
