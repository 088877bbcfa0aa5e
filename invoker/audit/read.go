// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// maxLine bounds a line that is read, in bytes.
const maxLine = 16 << 20

// Read yields the records of a file in its order. A line that is no record,
// such as one that was being written when a disk was full, yields an error that
// names it by its number, from 1, and the next ones are read all the same.
// Empty lines are passed over. An error of r itself ends the sequence. At most
// 16 MiB of a line are held; a longer one is no record.
func Read(r io.Reader) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		reader := bufio.NewReaderSize(r, 64<<10)
		for number := 1; ; number++ {
			line, size, err := readLine(reader)
			if err != nil && !errors.Is(err, io.EOF) {
				yield(Record{}, fmt.Errorf("audit: reading line %d: %w", number, err))
				return
			}
			if len(bytes.TrimSpace(line)) > 0 && !yield(parse(line, size, number)) || err != nil {
				return
			}
		}
	}
}

// readLine returns a line, or its beginning if it is too long, and its size.
func readLine(reader *bufio.Reader) (line []byte, size int, err error) {
	for {
		piece, err := reader.ReadSlice('\n')
		size += len(piece)
		if size <= maxLine {
			line = append(line, piece...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, size, err
		}
	}
}

// parse reads one line.
func parse(line []byte, size, number int) (Record, error) {
	if size > maxLine {
		return Record{}, fmt.Errorf("audit: line %d is no record: it has %d bytes, and %d is the most", number, size, maxLine)
	}
	var record Record
	if line = bytes.TrimSpace(line); line[0] != '{' {
		return Record{}, fmt.Errorf("audit: line %d is no record: it is no JSON object", number)
	}
	if err := json.Unmarshal(line, &record); err != nil {
		return Record{}, fmt.Errorf("audit: line %d is no record: %w", number, err)
	}
	return record, nil
}
