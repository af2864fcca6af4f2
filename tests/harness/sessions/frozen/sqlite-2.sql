BEGIN TRANSACTION;
CREATE TABLE harness_conversations (
        session BIGINT NOT NULL REFERENCES harness_sessions (id) ON DELETE CASCADE,
        name TEXT NOT NULL, PRIMARY KEY (session, name));
INSERT INTO "harness_conversations" VALUES(1,'sub');
CREATE TABLE harness_events (
        run_id TEXT NOT NULL, number BIGINT NOT NULL, happened_at REAL NOT NULL,
        body TEXT NOT NULL, ends BLOB, PRIMARY KEY (run_id, number));
INSERT INTO "harness_events" VALUES('r',2,12.5,'{"type":"text_delta","text":"ab","message_id":"m"}',X'0100000002000000');
INSERT INTO "harness_events" VALUES('r',3,12.5,'{"type":"run_result","status":"completed","text":"ab","usage":{}}',NULL);
CREATE TABLE harness_leases (
        tenant_id TEXT NOT NULL, user_id TEXT NOT NULL, session_id TEXT NOT NULL, holder TEXT NOT NULL, fence BIGINT NOT NULL, expires_at REAL NOT NULL,
        PRIMARY KEY (tenant_id, user_id, session_id));
INSERT INTO "harness_leases" VALUES('here','ann','s','',1796019990369,0.0);
CREATE TABLE harness_messages (
        session BIGINT NOT NULL REFERENCES harness_sessions (id) ON DELETE CASCADE,
        conversation TEXT NOT NULL, position BIGINT NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (session, conversation, position));
INSERT INTO "harness_messages" VALUES(1,'',0,'{"v":1,"id":"u","role":"user","content":[{"type":"text","text":"hello 日"},{"type":"image","media_type":"image/png","sha256":"2cea274d0bedc39ec4ab6ba9e59ec889e3ed6fb56a1cf088a64d9b383378dc97","name":"p.png","width":4,"height":4,"kept":7}]}');
INSERT INTO "harness_messages" VALUES(1,'',1,'{"v":1,"id":"a","role":"assistant","parent_id":"u","content":[{"type":"tool_use","id":"c","name":"t","arguments":{"x":[1]}}]}');
INSERT INTO "harness_messages" VALUES(1,'',2,'{"v":1,"id":"t","role":"tool","parent_id":"a","content":[{"type":"tool_result","call_id":"c","content":[{"type":"text","text":"done"}]}]}');
INSERT INTO "harness_messages" VALUES(1,'sub',0,'{"v":1,"id":"x","role":"user","content":[{"type":"text","text":"inner"}]}');
CREATE TABLE harness_pictures (
        session BIGINT NOT NULL REFERENCES harness_sessions (id) ON DELETE CASCADE,
        sha256 TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (session, sha256));
INSERT INTO "harness_pictures" VALUES(1,'2cea274d0bedc39ec4ab6ba9e59ec889e3ed6fb56a1cf088a64d9b383378dc97',X'70696374757265');
CREATE TABLE harness_runs (
        run_id TEXT PRIMARY KEY, last BIGINT NOT NULL, ended INTEGER NOT NULL,
        joined INTEGER NOT NULL, gap_before BIGINT NOT NULL, token TEXT NOT NULL);
INSERT INTO "harness_runs" VALUES('r',3,1,1,0,'671e42faf272430c94ba683f38337338');
CREATE TABLE harness_schema (version INTEGER PRIMARY KEY, applied_at REAL NOT NULL);
INSERT INTO "harness_schema" VALUES(1,1.79601999035299110408e+09);
INSERT INTO "harness_schema" VALUES(2,1.79601999035399699207e+09);
CREATE TABLE harness_sessions (
        id INTEGER PRIMARY KEY AUTOINCREMENT, tenant_id TEXT NOT NULL, user_id TEXT NOT NULL, session_id TEXT NOT NULL,
        revision BIGINT NOT NULL, replayable INTEGER NOT NULL, token TEXT NOT NULL,
        updated_at REAL NOT NULL,
        UNIQUE (tenant_id, user_id, session_id));
INSERT INTO "harness_sessions" VALUES(1,'here','ann','s',1,0,'48caaae746f44d7897366453c3d4f66f',1.79601999037701034545e+09);
CREATE TABLE harness_states (
        session BIGINT PRIMARY KEY REFERENCES harness_sessions (id) ON DELETE CASCADE,
        body TEXT NOT NULL);
INSERT INTO "harness_states" VALUES(1,'{"n":1}');
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('harness_sessions',1);
COMMIT;
