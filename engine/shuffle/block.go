package shuffle

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/xxh3"

	"github.com/quern-project/quern/sdk/abi"
)

// A block is a header and whole records of one partition, compressed if that
// makes them shorter. A record longer than a block has a block of its own.

// blockHeaderSize is the length in bytes of a block's header:
//
//	0  partition u32
//	4  length of the records u32
//	8  length as stored u32
//	12 number of records u32
//	16 codec u32
//	20 checksum of what is stored u64
//	28 checksum of bytes 0-27 u32
//
// The header has a checksum of its own so that no length is believed, and no
// memory drawn for it, before it is known to be what was written.
const blockHeaderSize = 32

// blockHeader says what the stored bytes behind it are.
type blockHeader struct {
	partition uint32
	raw       int // length of the records in bytes
	stored    int // length of what is stored in bytes, at most raw
	records   uint32
	codec     codec
	sum       uint64
}

const (
	// maxBlock is the longest that a single record can make a block.
	maxBlock = abi.MaxRecord + 2*binary.MaxVarintLen64
	// maxCompressed is the longest block that is compressed: longer records are
	// stored as they are, because compressing needs as much memory again.
	maxCompressed = 8 << 20
)

func (h blockHeader) put(b []byte) {
	le := binary.LittleEndian
	le.PutUint32(b[0:], h.partition)
	le.PutUint32(b[4:], uint32(h.raw))
	le.PutUint32(b[8:], uint32(h.stored))
	le.PutUint32(b[12:], h.records)
	le.PutUint32(b[16:], uint32(h.codec))
	le.PutUint64(b[20:], h.sum)
	le.PutUint32(b[28:], uint32(xxh3.Hash(b[:28])))
}

var errHeader = errors.New("the checksum of the block's header differs: the file is corrupted")

func parseBlockHeader(b []byte) (blockHeader, error) {
	le := binary.LittleEndian
	if uint32(xxh3.Hash(b[:28])) != le.Uint32(b[28:]) {
		return blockHeader{}, errHeader
	}
	h := blockHeader{
		partition: le.Uint32(b[0:]),
		raw:       int(le.Uint32(b[4:])),
		stored:    int(le.Uint32(b[8:])),
		records:   le.Uint32(b[12:]),
		codec:     codec(le.Uint32(b[16:])),
		sum:       le.Uint64(b[20:]),
	}
	switch {
	case h.raw > maxBlock, h.stored > h.raw, h.records == 0, h.raw < 2*int(h.records):
		return h, fmt.Errorf("impossible lengths in the block's header: %d bytes stored for %d bytes, %d records",
			h.stored, h.raw, h.records)
	case h.codec == codecNone && h.stored != h.raw, h.codec != codecNone && h.raw > maxCompressed:
		return h, fmt.Errorf("impossible lengths in the block's header: %d bytes stored for %d bytes with codec %d",
			h.stored, h.raw, h.codec)
	}
	return h, nil
}

// codec is how a block is compressed.
type codec uint32

const (
	codecNone codec = 0
	codecS2   codec = 1
	codecZstd codec = 2
)

func codecOf(name string) (codec, error) {
	switch name {
	case "", "s2":
		return codecS2, nil
	case "zstd":
		return codecZstd, nil
	case "none":
		return codecNone, nil
	}
	return 0, fmt.Errorf(`unknown compression %q: it may be "s2", "zstd" or "none"`, name)
}

// memory is what a compressor takes beside its input and output, about.
func (c codec) memory() int64 {
	if c == codecZstd {
		return 1 << 20
	}
	return 0
}

// compressor compresses blocks. The zero value with a codec is ready.
type compressor struct {
	codec codec
	zstd  *zstd.Encoder
}

// bound is the most bytes that compressing n bytes may write.
func (c *compressor) bound(n int) int { return n + n/32 + 512 }

// compress writes src's compressed form to dst, which is bound(len(src)) bytes
// long, and answers its length; 0 if it is not shorter.
func (c *compressor) compress(dst, src []byte) (int, error) {
	var out []byte
	switch c.codec {
	case codecS2:
		out = s2.Encode(dst, src)
	case codecZstd:
		if c.zstd == nil {
			e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
				zstd.WithWindowSize(256<<10), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
			if err != nil {
				return 0, fmt.Errorf("starting zstd: %w", err)
			}
			c.zstd = e
		}
		out = c.zstd.EncodeAll(src, dst[:0])
	default:
		return 0, nil
	}
	if len(out) >= len(src) {
		return 0, nil
	}
	if len(out) > 0 && &out[0] != &dst[0] { // it did not fit, against the documentation
		copy(dst, out)
	}
	return len(out), nil
}

func (c *compressor) close() {
	if c.zstd != nil {
		c.zstd.Close()
	}
}

// decompressor is the inverse. The zero value is ready.
type decompressor struct{ zstd *zstd.Decoder }

// decompress fills dst, whose length is that of the records.
func (d *decompressor) decompress(c codec, dst, src []byte) error {
	var out []byte
	var err error
	switch c {
	case codecS2:
		n, err := s2.DecodedLen(src)
		if err != nil {
			return err
		}
		if n != len(dst) {
			return fmt.Errorf("a block of %d bytes instead of %d", n, len(dst))
		}
		if out, err = s2.Decode(dst, src); err != nil {
			return err
		}
	case codecZstd:
		if d.zstd == nil {
			d.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxMemory(maxCompressed), zstd.WithDecodeAllCapLimit(true))
			if err != nil {
				return fmt.Errorf("starting zstd: %w", err)
			}
		}
		if out, err = d.zstd.DecodeAll(src, dst[:0:len(dst)]); err != nil {
			return err
		}
	default:
		return fmt.Errorf("unknown codec %d", c)
	}
	if len(out) != len(dst) {
		return fmt.Errorf("a block of %d bytes instead of %d", len(out), len(dst))
	}
	return nil
}

func (d *decompressor) close() {
	if d.zstd != nil {
		d.zstd.Close()
	}
}
