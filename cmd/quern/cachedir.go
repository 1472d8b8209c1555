package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/quern-project/quern/engine/conf"
)

// withUsableCache returns a configuration whose quern.cache.dir can be used. A
// default that cannot be used, because HOME is not set, say, is no reason not to
// run a job: it is replaced by no cache, with a warning. A directory that the user
// chose is left as it is, and what is wrong with it is an error later.
func withUsableCache(c *conf.Conf, log *slog.Logger) (*conf.Conf, error) {
	if conf.CacheDir.IsSet(c) {
		return c, nil
	}
	dir, err := conf.DefaultCacheDir()
	if err == nil {
		err = checkWritable(dir)
	}
	if err == nil {
		return c, nil
	}
	log.Warn("there is no cache of compiled jobs, so starting takes longer: set "+conf.CacheDirVariable()+" or --conf "+
		conf.CacheDir.Name()+"=DIR to a directory that you can write to", "cause", err)
	return c.With([]conf.Setting{conf.CacheDir.Set("", conf.FromDefault, "no usable directory")})
}

// checkWritable makes the directory if need be and says why nothing can be
// written to it.
func checkWritable(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "probe-")
	if err != nil {
		// The name of the file that could not be made helps nobody.
		if path := (*os.PathError)(nil); errors.As(err, &path) {
			err = path.Err
		}
		return fmt.Errorf("write to %s: %w", dir, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
