package linearmem

// copied keeps a memory in ordinary Go memory. It works everywhere.
type copied struct {
	buf []byte // len is the capacity; zero beyond what was used
	src Source
}

func (c *copied) grow(size int64) ([]byte, error) {
	if size > int64(len(c.buf)) {
		// A quarter more, so that many small growths do not copy each time.
		bigger := make([]byte, size+size/4/PageSize*PageSize)
		copy(bigger, c.buf)
		c.buf = bigger
	}
	return c.buf[:size:size], nil
}

func (c *copied) load(src Source, used int64) ([]byte, error) {
	n := len(src.Places()) * PageSize
	if n > len(c.buf) {
		c.buf = make([]byte, n)
		used = 0
	}
	for i := range src.Places() {
		to := c.buf[i*PageSize : (i+1)*PageSize]
		if from := src.Page(i); from != nil {
			copy(to, from)
		} else {
			clear(to)
		}
	}
	if int64(n) < used {
		clear(c.buf[n:used])
	}
	c.src = src
	return c.buf[:n:n], nil
}

func (c *copied) reload(used int64) ([]byte, error) { return c.load(c.src, used) }

func (c *copied) close() error {
	c.buf, c.src = nil, nil
	return nil
}
