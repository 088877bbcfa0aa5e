// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A request may begin while the server is open, and its client has neither too
// many under way nor sent too many.
func TestEnter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(nil, &ServerOptions{Parallel: 1, Rate: 2})
		begin := func(client string, what access.Kind, want time.Duration) (leave func()) {
			t.Helper()
			leave, refused := s.enter(client, what)
			if (leave == nil) != (want > 0) || refused != nil && refused.RetryAfter != want {
				t.Fatalf("%s: %v", client, refused)
			}
			return leave
		}
		leave := begin("ada", access.Request, 0)
		begin("ada", access.Request, time.Second) // it has one under way
		begin("ada", access.Request, 500*time.Millisecond)
		begin("ben", access.Request, 0)()
		time.Sleep(time.Second)
		leave()
		begin("ada", access.Request, 0)()
		begin("ada", access.Stream, 0)()
		if err := s.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		_, refused := s.enter("ben", access.Request)
		if refused == nil || status.Code(refusal(refused)) != codes.Unavailable {
			t.Errorf("a closed server: %v", refused)
		}
	})
}

func TestRefusal(t *testing.T) {
	s := NewServer(nil, &ServerOptions{Rate: 0.5})
	leave, refused := s.enter("ada", access.Request)
	if refused != nil {
		t.Fatal(refused)
	}
	leave()
	if _, refused = s.enter("ada", access.Request); refused == nil {
		t.Fatal("a second request may begin")
	}
	defer s.Close(context.Background())
	err := status.Convert(refusal(refused))
	if err.Code() != codes.ResourceExhausted || len(err.Details()) != 1 {
		t.Fatalf("got %v", err)
	}
	if wait := err.Details()[0].(*errdetails.RetryInfo).GetRetryDelay().AsDuration(); wait <= time.Second || wait > 2*time.Second {
		t.Errorf("the client is to wait %v", wait)
	}
}

// twoFrames is a stream that has two frames to give.
type twoFrames struct {
	frames
	left int
}

func (s *twoFrames) Recv() (*toolspb.ConnectRequest, error) {
	if s.left == 0 {
		return nil, io.EOF
	}
	s.left--
	return &toolspb.ConnectRequest{Message: []byte("{}")}, nil
}

// Frames beyond the rate of their client are read when it allows them, and the
// end does not wait for that.
func TestFramesHaveARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients := access.New(access.Limits{Rate: 0.1, Parallel: 1})
		arrive := func() time.Duration { return clients.Arrive("ada") }
		r := newFrameReader(&twoFrames{left: 2}, arrive, nil)
		start := time.Now()
		text, err := io.ReadAll(r)
		if took := time.Since(start); string(text) != "{}\n{}\n" || err != nil || took < 10*time.Second || took > 11*time.Second {
			t.Errorf("%q, %v after %v", text, err, took)
		}
		r = newFrameReader(&twoFrames{left: 1}, arrive, nil)
		_ = r.Close()
		if text, err := io.ReadAll(r); len(text) > 0 || err != nil {
			t.Errorf("after the end: %q, %v", text, err)
		}
	})
}
