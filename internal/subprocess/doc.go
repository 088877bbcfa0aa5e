// SPDX-License-Identifier: Apache-2.0

// Package subprocess runs a server as a child process and speaks to it in lines over its
// standard streams. It keeps the end of stderr for errors, bounds the resources of the
// process, and ends the process with all its children.
//
//	p, err := subprocess.Command{Name: "files", Argv: argv, Env: subprocess.SafeEnv(given), Output: read}.Start(ctx)
//	if err != nil { return err }     // nothing is left running
//	…
//	err = p.Write(ctx, line)         // wraps ErrNotSent if no byte was sent
//	…
//	<-p.Lost()                       // closed when the process exits; p.Err() says why
//	…
//	err = p.Close(ctx)               // nothing is left running
//
// After any failure the shutdown begins on its own, but only Close and Kill wait for it.
// One of them must be called in every case.
package subprocess
