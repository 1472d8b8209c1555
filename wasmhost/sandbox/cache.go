package sandbox

type cache struct{}

func openCache(dir string, size int64) (*cache, error) { return &cache{}, nil }
