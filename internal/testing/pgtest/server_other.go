// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package pgtest

import (
	"errors"
	"fmt"
	"testing"
)

// Server is a PostgreSQL server that can be stopped, killed and started again. It is not
// supported on this platform.
type Server struct{}

func start(string) (*Server, error) {
	return nil, fmt.Errorf("%w: %w", errMissing, errors.ErrUnsupported)
}

func (s *Server) close() error  { return nil }
func (s *Server) admin() string { return "" }

// Socket returns the directory of the server's socket.
func (s *Server) Socket() string { return "" }

// Stop stops the server while it is working.
func (s *Server) Stop(testing.TB) {}

// Kill kills the server.
func (s *Server) Kill(testing.TB) {}

// Start starts the server again.
func (s *Server) Start(testing.TB) {}

// Restart stops the server and starts it again.
func (s *Server) Restart(testing.TB) {}
