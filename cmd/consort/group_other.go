//go:build !unix

// SPDX-License-Identifier: Apache-2.0

package main

import "syscall"

// ownGroup does nothing where process groups are not known.
func ownGroup() *syscall.SysProcAttr { return nil }
