// SPDX-License-Identifier: Apache-2.0

package modelapi

import (
	"bytes"
	"crypto/sha256"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Requests that are sent at the same time, whose connections share buffers, arrive as they
// were given.
func TestBodiesArriveWhole(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		sum := sha256.New()
		if _, err := io.Copy(sum, req.Body); err != nil {
			t.Error(err)
		}
		_, _ = w.Write(sum.Sum(nil))
	}))
	defer server.Close()
	client, own := Client(nil)
	defer own.CloseIdleConnections()
	var posts sync.WaitGroup
	for i := range 20 {
		posts.Go(func() {
			body := bytes.Repeat([]byte{byte('a' + i)}, 30_000*i)
			res, err := client.Post(server.URL, "text/plain", bytes.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			got, err := io.ReadAll(res.Body)
			if want := sha256.Sum256(body); err != nil || !bytes.Equal(got, want[:]) {
				t.Errorf("a body of %d bytes did not arrive as it was sent (%v)", len(body), err)
			}
		})
	}
	posts.Wait()
}

// The connections of a client do not use the ReadFrom of the connection below, which
// allocates a buffer.
func TestConnectionsShareBuffers(t *testing.T) {
	_, own := Client(nil)
	defer own.CloseIdleConnections()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	c, err := own.DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, ok := c.(*sharingConn); !ok {
		t.Fatalf("the connection is a %T", c)
	}
	var sent countingConn
	shared := &sharingConn{&sent}
	if n, err := shared.ReadFrom(io.LimitReader(strings.NewReader(strings.Repeat("x", 200_000)), 100_000)); n != 100_000 || err != nil ||
		sent.bytes != 100_000 {
		t.Errorf("sent %d bytes of %d (%v)", sent.bytes, n, err)
	}
	if sent.copied {
		t.Error("the connection below copied the body")
	}
	if _, err := own.DialContext(t.Context(), "tcp", "127.0.0.1:0"); err == nil {
		t.Error("a connection that cannot be made is no error")
	}
}

// countingConn counts the bytes that are written.
type countingConn struct {
	net.Conn
	bytes  int
	copied bool
}

func (c *countingConn) Write(p []byte) (int, error) {
	c.bytes += len(p)
	return len(p), nil
}

func (c *countingConn) ReadFrom(r io.Reader) (int64, error) {
	c.copied = true
	return io.Copy(struct{ io.Writer }{c}, r)
}
