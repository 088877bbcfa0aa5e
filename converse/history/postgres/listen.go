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

// MaxPayload is how many bytes [Store.Notify] passes on at most.
const MaxPayload = 64 << 10

// Notify passes a payload on to those who listen to a conversation now, on any
// machine, in the order of the calls that follow each other. Nothing of it is
// kept: who does not listen, or is too slow, misses it. The conversation need
// not exist. A payload of more than [MaxPayload] bytes is an error. Every role
// that may connect to the database can listen.
func (s *Store) Notify(ctx context.Context, conversation string, payload []byte) error {
	if err := history.CheckID(conversation); err != nil {
		return err
	}
	if len(payload) > MaxPayload {
		return fmt.Errorf("history/postgres: the payload for conversation %q has %d bytes; it may have %d", conversation, len(payload), MaxPayload)
	}
	if err := s.usable(ctx); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for try := 1; ; try++ {
		_, err := s.pool.Exec(bounded, "SELECT pg_notify($1, frame) FROM unnest($2::text[]) WITH ORDINALITY AS frames (frame, place) ORDER BY place",
			s.channel('p', conversation), frames(payload))
		if err == nil || try == tries || !pgconn.SafeToRetry(err) {
			return s.fault(ctx, conversation, late(bounded, err))
		}
	}
}

// Listen yields the payloads that are passed on for a conversation, from now on.
// A nil payload says that something may have been missed, and comes first of
// all: from then on it hears. It comes again when the loop was too slow for what
// is kept for it (256 payloads or 1 MiB), and when the connection was lost and
// is there again; whoever needs to know what was missed reads the conversation.
// It ends with the error of the context, with history.ErrClosed, or with what
// the server has against it.
func (s *Store) Listen(ctx context.Context, conversation string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		h, err := s.ear.hear(ctx, 'p', conversation)
		if err != nil {
			yield(nil, err)
			return
		}
		defer s.ear.leave(h)
		for {
			payloads, err := h.next(ctx)
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

// Watch yields the length of a conversation, and again whenever it has changed:
// the last, not each one in between. It is 0 if there is no such conversation.
// Usually that is told at once; where a message was lost, with a program that
// died or a connection that broke, it is found within 5 s of the database being
// there. It ends as Listen does.
func (s *Store) Watch(ctx context.Context, conversation string) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		h, err := s.ear.hear(ctx, 'g', conversation)
		if err != nil {
			yield(0, err)
			return
		}
		defer s.ear.leave(h)
		for {
			if _, err := h.next(ctx); err != nil {
				yield(0, err)
				return
			}
			length, err := s.lengthOf(ctx, conversation)
			if lost(err) && ctx.Err() == nil {
				continue // the ear says when to look again
			}
			now := int64(length)
			switch {
			case err != nil:
				yield(0, s.fault(ctx, conversation, err))
				return
			case h.seen.Swap(now) != now && !yield(int(now), nil):
				return
			}
		}
	}
}

// lengthOf returns the length of a conversation. A connection that is silent for
// as long as the ear would wait is lost.
func (s *Store) lengthOf(ctx context.Context, conversation string) (int, error) {
	bounded, cancel := context.WithTimeout(ctx, min(s.timeout, hearTime))
	defer cancel()
	all, err := s.lengths(bounded, s.pool, []string{conversation})
	return all[conversation], late(bounded, err)
}

// channel is the name of what is told of a conversation: 'p' its payloads, 'g'
// that it grew. A name in PostgreSQL has 63 bytes at most.
func (s *Store) channel(kind byte, conversation string) string {
	sum := sha256.Sum256([]byte(s.name + "\x00" + conversation))
	return "consort_" + string(kind) + "_" + hex.EncodeToString(sum[:20])
}

// A frame is what the server takes at a time: less than 8,000 bytes of text.
const (
	frameText = 7800
	frameData = frameText / 4 * 3 // as base64
)

// frames are a payload as the server takes it: a "t" and the text, or so many
// of "2/3:" and base64.
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

// puzzle puts the frames of payloads together. Those of one payload follow each
// other.
type puzzle struct {
	have []byte
	next int // frame, from 1
}

// add returns the payload when it is there. What does not fit is no payload of
// this program, and missed.
func (p *puzzle) add(frame string) (payload []byte, whole, fits bool) {
	if text, ok := strings.CutPrefix(frame, "t"); ok {
		return []byte(text), true, true
	}
	head, data, _ := strings.Cut(frame, ":")
	i, n, _ := strings.Cut(head, "/")
	place, _ := strconv.Atoi(i)
	of, _ := strconv.Atoi(n)
	if place == 1 {
		*p = puzzle{next: 1}
	}
	piece, err := base64.StdEncoding.DecodeString(data)
	if err != nil || place < 1 || place != p.next || place > of || len(p.have)+len(piece) > MaxPayload {
		*p = puzzle{}
		return nil, false, false
	}
	p.have = append(p.have, piece...)
	p.next++
	if place < of {
		return nil, false, true
	}
	payload = append([]byte{}, p.have...) // nil would say that something was missed
	*p = puzzle{}
	return payload, true, true
}
