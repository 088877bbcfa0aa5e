// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/consort-go/consort/converse/history"
	"github.com/jackc/pgx/v5/pgconn"
)

// maxPayload is the maximum number of bytes that [Store.Notify] accepts.
const maxPayload = 64 << 10

// Notify sends a payload to the current listeners of a conversation, on any machine.
// Payloads of sequential calls arrive in order. Nothing is stored: listeners that
// subscribe later, or are too slow, miss it. The conversation need not exist. A payload
// of more than 64 KiB is an error. Every role that may connect to the
// database can listen.
func (s *Store) Notify(ctx context.Context, conversation string, payload []byte) error {
	if err := history.CheckID(conversation); err != nil {
		return err
	}
	if len(payload) > maxPayload {
		return fmt.Errorf("history/postgres: the payload for conversation %q has %d bytes; it may have %d", conversation, len(payload), maxPayload)
	}
	if err := s.common.Usable(ctx); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for try := 1; ; try++ {
		_, err := s.pool.Exec(bounded, "SELECT pg_notify($1, frame) FROM unnest($2::text[]) WITH ORDINALITY AS frames (frame, place) ORDER BY place",
			s.channel('p', conversation), frames(payload))
		if err == nil || try == tries || !pgconn.SafeToRetry(err) {
			return s.explain(ctx, conversation, orContextError(bounded, err))
		}
	}
}

// Listen yields the payloads sent for a conversation from now on. A nil payload means
// that something may have been missed. The first payload is nil, when listening has
// begun. Nil comes again when the loop was too slow for the buffer (256 payloads or 1
// MiB), and after a lost connection was restored; a caller that needs the missed
// information must read the conversation. The sequence ends with the error of the
// context, with history.ErrClosed, or with an error of the server.
func (s *Store) Listen(ctx context.Context, conversation string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		sub, err := s.listener.subscribe(ctx, 'p', conversation)
		if err != nil {
			yield(nil, err)
			return
		}
		defer s.listener.unsubscribe(sub)
		for {
			payloads, err := sub.next(ctx)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, payload := range payloads {
				if !yield(payload, nil) {
					return
				}
			}
		}
	}
}

// Watch yields the length of a conversation, and again whenever it has changed: the
// latest length, not each one in between. It is 0 if the conversation does not exist.
// Changes are usually reported immediately; if a notification was lost, because a
// program died or a connection broke, the change is found within 5 s of the database
// being reachable. It ends as Listen does.
func (s *Store) Watch(ctx context.Context, conversation string) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		sub, err := s.listener.subscribe(ctx, 'g', conversation)
		if err != nil {
			yield(0, err)
			return
		}
		defer s.listener.unsubscribe(sub)
		for {
			if _, err := sub.next(ctx); err != nil {
				yield(0, err)
				return
			}
			length, err := s.lengthOf(ctx, conversation)
			if lost(err) && ctx.Err() == nil {
				continue // the listener signals when to read again
			}
			now := int64(length)
			switch {
			case err != nil:
				yield(0, s.explain(ctx, conversation, err))
				return
			case sub.seen.Swap(now) != now && !yield(int(now), nil):
				return
			}
		}
	}
}

// lengthOf returns the length of a conversation. A connection that is silent for
// answerTimeout is treated as lost.
func (s *Store) lengthOf(ctx context.Context, conversation string) (int, error) {
	bounded, cancel := context.WithTimeout(ctx, min(s.timeout, answerTimeout))
	defer cancel()
	all, err := s.lengths(bounded, s.pool, []string{conversation})
	return all[conversation], orContextError(bounded, err)
}

// channel returns the name of the channel for a conversation: 'p' for its payloads, 'g'
// for its growth. A name in PostgreSQL has at most 63 bytes.
func (s *Store) channel(kind byte, conversation string) string {
	sum := sha256.Sum256([]byte(s.name + "\x00" + conversation))
	return "consort_" + string(kind) + "_" + hex.EncodeToString(sum[:20])
}

// A frame is the text of one notification, which the server limits to less than 8,000
// bytes.
const (
	frameText = 7800
	frameData = frameText / 4 * 3 // as base64
)

// frames returns a payload as frames: either "t" and the text, or several with a prefix
// like "2/3:" and base64.
func frames(payload []byte) []string {
	if text := string(payload); len(text) <= frameText && utf8.ValidString(text) && !strings.Contains(text, "\x00") {
		return []string{"t" + text}
	}
	var all []string
	n := (len(payload) + frameData - 1) / frameData
	for piece := range slices.Chunk(payload, frameData) {
		all = append(all, fmt.Sprintf("%d/%d:%s", len(all)+1, n, base64.StdEncoding.EncodeToString(piece)))
	}
	return all
}

// assembler assembles payloads from frames. The frames of one payload arrive
// consecutively.
type assembler struct {
	have []byte
	next int // frame, from 1
}

// add returns the payload when it is complete. A frame that does not fit is not from
// this program, or follows a missed one.
func (a *assembler) add(frame string) (payload []byte, whole, fits bool) {
	if text, ok := strings.CutPrefix(frame, "t"); ok {
		return []byte(text), true, true
	}
	head, data, _ := strings.Cut(frame, ":")
	i, n, _ := strings.Cut(head, "/")
	number, _ := strconv.Atoi(i)
	of, _ := strconv.Atoi(n)
	if number == 1 {
		*a = assembler{next: 1}
	}
	piece, err := base64.StdEncoding.DecodeString(data)
	if err != nil || number < 1 || number != a.next || number > of || len(a.have)+len(piece) > maxPayload {
		*a = assembler{}
		return nil, false, false
	}
	a.have = append(a.have, piece...)
	a.next++
	if number < of {
		return nil, false, true
	}
	payload = append([]byte{}, a.have...) // nil would mean that something was missed
	*a = assembler{}
	return payload, true, true
}
