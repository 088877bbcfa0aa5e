-- Logins at servers, encrypted by the program.
CREATE TABLE @.logins (
	name    text   COLLATE "C" PRIMARY KEY,
	version bigint NOT NULL, -- grows with each change
	sealed  bytea  NOT NULL, -- empty: there is none
	holder  text   NOT NULL  -- who changes it now; empty: nobody
);
