// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
)

// long is the maximum length of the line of a content that is stored in the canister's
// row: 1 KiB plus the overhead of the form.
const long = 1<<10 + 100

// Row is a canister as stored in the tables.
type Row struct {
	Position int // from 0
	ID       string
	Kind     canister.Kind
	Line     []byte // the JSON form, without the long contents
	Parts    []Part
	Size     int    // bytes of the line and the long contents
	Sum      int64  // the CRC-32C as it was written
	Folded   string // if Store.Folded: the text that a search compares; each part has its own
}

// Part is a long content of a canister.
type Part struct {
	Index  int // among the contents
	Hash   [sha256.Size]byte
	Body   []byte // the line of a User with only this content
	Folded string // as in Row
}

// rowsOf returns the rows of canisters; position is the index of the first.
func rowsOf(conversation string, position int, canisters []canister.Canister, folded bool) ([]Row, error) {
	lines, err := history.MarshalAll(conversation, canisters)
	if err != nil {
		return nil, err
	}
	rows := make([]Row, len(lines))
	for i, line := range lines {
		rows[i], err = RowOf(position+i, canisters[i], line)
		if err == nil && folded {
			err = rows[i].fold(canisters[i])
		}
		if err != nil {
			return nil, fmt.Errorf("history: conversation %q: canister %d of those to append: %w", conversation, i+1, err)
		}
	}
	return rows, nil
}

// fold sets the texts that a search compares.
func (r *Row) fold(c canister.Canister) (err error) {
	if len(r.Parts) == 0 {
		r.Folded = Fold(history.TextOf(c))
		return nil
	}
	r.Folded, err = foldLine(r.Line)
	for i := range r.Parts {
		if err == nil {
			r.Parts[i].Folded, err = foldLine(r.Parts[i].Body)
		}
	}
	return err
}

// foldLine returns the text of the canister in a line as a search compares it.
func foldLine(line []byte) (string, error) {
	c, err := canister.Unmarshal(line)
	if err != nil {
		return "", err
	}
	return Fold(history.TextOf(c)), nil
}

// RowOf returns the row of a canister; line is its JSON form.
func RowOf(position int, c canister.Canister, line []byte) (Row, error) {
	r := Row{Position: position, ID: c.Header().ID, Kind: c.Kind(), Size: len(line)}
	if len(line) > long {
		rest, parts, err := divide(canister.ContentOf(c))
		if err == nil && len(parts) > 0 {
			line, err = canister.Marshal(canister.WithContent(c, rest))
		}
		if err != nil {
			return Row{}, err
		}
		r.Parts = parts
	}
	r.Line = line
	r.Sum = r.checksum()
	return r, nil
}

// divide splits the contents into short and long ones.
func divide(contents []canister.Content) (rest []canister.Content, parts []Part, err error) {
	for i, content := range contents {
		body, err := canister.Marshal(canister.User{Content: []canister.Content{content}})
		if err != nil {
			return nil, nil, err
		}
		if len(body) <= long {
			rest = append(rest, content)
			continue
		}
		parts = append(parts, Part{Index: i, Hash: sha256.Sum256(body), Body: body})
	}
	return rest, parts, nil
}

// canister returns the canister of the row, if its checksum matches.
func (r Row) canister() (canister.Canister, error) {
	if sum := r.checksum(); sum != r.Sum {
		return nil, fmt.Errorf("the checksum is %08x; it was %08x when written", sum, r.Sum)
	}
	c, err := canister.Unmarshal(r.Line)
	if err != nil || len(r.Parts) == 0 {
		return c, err
	}
	contents := canister.ContentOf(c)
	for _, p := range r.Parts {
		held, err := canister.Unmarshal(p.Body)
		if err != nil {
			return nil, err
		}
		user, _ := held.(canister.User)
		if len(user.Content) != 1 || p.Index > len(contents) {
			return nil, errors.New("its long contents do not fit into it")
		}
		contents = slices.Insert(contents, p.Index, user.Content[0])
	}
	return canister.WithContent(c, contents), nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the CRC-32C of the position as 8 bytes, the ID, a 0, the line,
// and for each part its index as 8 bytes and its hash.
func (r Row) checksum() int64 {
	head := binary.BigEndian.AppendUint64(make([]byte, 0, 64), uint64(r.Position))
	head = append(append(head, r.ID...), 0)
	sum := crc32.Checksum(head, castagnoli)
	sum = crc32.Update(sum, castagnoli, r.Line)
	for _, p := range r.Parts {
		sum = crc32.Update(sum, castagnoli, binary.BigEndian.AppendUint64(head[:0], uint64(p.Index)))
		sum = crc32.Update(sum, castagnoli, p.Hash[:])
	}
	return int64(sum)
}

// Fold normalizes a text for searching: lower case, valid UTF-8, and without NULs,
// which end a text in some databases.
func Fold(text string) string {
	return strings.ReplaceAll(strings.ToLower(strings.ToValidUTF8(text, "\ufffd")), "\x00", "\ufffd")
}
