-- SPDX-License-Identifier: Apache-2.0

-- Every query has a user.
CREATE INDEX tasks_of_user ON tasks (user_id, id);
