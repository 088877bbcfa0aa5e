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

// maxLine is the maximum length of a line, in bytes.
const maxLine = 16 << 20

// Read yields the records of a file in order. For a line that is not a record,
// such as one that was cut off by a full disk, it yields an error with the line
// number, counted from 1, and continues with the next line. Empty lines are
// skipped. An error of r itself ends the sequence. A line longer than 16 MiB is
// not a record; at most 16 MiB are held in memory.
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

// readLine returns a line and its size. Only the beginning of a long line is
// returned.
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

// parse parses one line.
func parse(line []byte, size, number int) (Record, error) {
	if size > maxLine {
		return Record{}, fmt.Errorf("audit: line %d is not a record: it has %d bytes; at most %d are allowed", number, size, maxLine)
	}
	var record Record
	if line = bytes.TrimSpace(line); line[0] != '{' {
		return Record{}, fmt.Errorf("audit: line %d is not a record: it is not a JSON object", number)
	}
	if err := json.Unmarshal(line, &record); err != nil {
		return Record{}, fmt.Errorf("audit: line %d is not a record: %w", number, err)
	}
	return record, nil
}
