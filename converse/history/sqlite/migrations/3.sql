-- Logins at servers, encrypted by the program.
CREATE TABLE logins (
	name    TEXT    NOT NULL PRIMARY KEY,
	version INTEGER NOT NULL, -- grows with each change
	sealed  BLOB    NOT NULL, -- empty: there is none
	holder  TEXT    NOT NULL  -- who changes it now; empty: nobody
) STRICT, WITHOUT ROWID;
