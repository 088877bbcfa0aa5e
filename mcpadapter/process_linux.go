// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import "syscall"

// dieWithParent has the kernel kill the server when this program is killed. It
// reaches the leader only; its children see the end of stdin.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
