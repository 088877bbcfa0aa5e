// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/consort-go/consort/canister"
)

// long is the length of a content's line from which on it stands in a table of
// its own: 1 KiB, and what the form puts around it.
const long = 1<<10 + 100

// row is a canister as it stands in the tables.
type row struct {
	position int
	id       string
	kind     canister.Kind
	line     []byte
	parts    []part
	size     int
	sum      int64
}

// part is a long content of a canister.
type part struct {
	place int // among the contents
	hash  [sha256.Size]byte
	body  []byte // the line of a User with nothing but it
}

// rowOf returns the row of a canister, of which line is the JSON form.
func rowOf(position int, c canister.Canister, line []byte) (row, error) {
	r := row{position: position, id: c.Header().ID, kind: c.Kind(), size: len(line)}
	if len(line) > long {
		rest, parts, err := divide(canister.ContentOf(c))
		if err == nil && len(parts) > 0 {
			line, err = canister.Marshal(canister.WithContent(c, rest))
		}
		if err != nil {
			return row{}, err
		}
		r.parts = parts
	}
	r.line = line
	r.sum = r.checksum()
	return r, nil
}

// divide returns the contents without the long ones, and those.
func divide(contents []canister.Content) (rest []canister.Content, parts []part, err error) {
	for i, content := range contents {
		body, err := canister.Marshal(canister.User{Content: []canister.Content{content}})
		if err != nil {
			return nil, nil, err
		}
		if len(body) <= long {
			rest = append(rest, content)
			continue
		}
		parts = append(parts, part{place: i, hash: sha256.Sum256(body), body: body})
	}
	return rest, parts, nil
}

// canister returns the canister of the row, if the row is as it was written.
func (r row) canister() (canister.Canister, error) {
	if sum := r.checksum(); sum != r.sum {
		return nil, fmt.Errorf("the checksum is %08x, and it was written with %08x", sum, r.sum)
	}
	c, err := canister.Unmarshal(r.line)
	if err != nil || len(r.parts) == 0 {
		return c, err
	}
	contents := canister.ContentOf(c)
	for _, p := range r.parts {
		held, err := canister.Unmarshal(p.body)
		if err != nil {
			return nil, err
		}
		user, _ := held.(canister.User)
		if len(user.Content) != 1 || p.place > len(contents) {
			return nil, errors.New("its long contents have no place in it")
		}
		contents = slices.Insert(contents, p.place, user.Content[0])
	}
	return canister.WithContent(c, contents), nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the CRC-32C of the position as 8 bytes, the identity, a 0,
// the line, and for each part its place as 8 bytes and its hash.
func (r row) checksum() int64 {
	var number [8]byte
	binary.BigEndian.PutUint64(number[:], uint64(r.position))
	sum := crc32.Checksum(number[:], castagnoli)
	sum = crc32.Update(sum, castagnoli, append([]byte(r.id), 0))
	sum = crc32.Update(sum, castagnoli, r.line)
	for _, p := range r.parts {
		binary.BigEndian.PutUint64(number[:], uint64(p.place))
		sum = crc32.Update(sum, castagnoli, number[:])
		sum = crc32.Update(sum, castagnoli, p.hash[:])
	}
	return int64(sum)
}
