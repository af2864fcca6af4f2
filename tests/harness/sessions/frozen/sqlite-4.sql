BEGIN TRANSACTION;
CREATE TABLE harness_answers (
        run_id TEXT NOT NULL, number BIGINT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL,
        body TEXT NOT NULL, token TEXT NOT NULL,
        PRIMARY KEY (run_id, number), UNIQUE (run_id, key));
INSERT INTO "harness_answers" VALUES('going',1,'decision','k','{"decision":"allow"}','a4ad11d7e4a44fef96097ed354b15f2c');
CREATE TABLE harness_blobs (
        tenant_id TEXT NOT NULL, user_id TEXT NOT NULL, session_id TEXT NOT NULL, sha256 TEXT NOT NULL, media_type TEXT NOT NULL, kept_at REAL NOT NULL,
        size BIGINT NOT NULL, data BLOB NOT NULL,
        PRIMARY KEY (tenant_id, user_id, session_id, sha256));
INSERT INTO "harness_blobs" VALUES('here','ann','s','2cea274d0bedc39ec4ab6ba9e59ec889e3ed6fb56a1cf088a64d9b383378dc97','image/png',1.79602905834399914739e+09,7,X'70696374757265');
CREATE TABLE harness_conversations (
        session BIGINT NOT NULL REFERENCES harness_sessions (id) ON DELETE CASCADE,
        name TEXT NOT NULL, PRIMARY KEY (session, name));
INSERT INTO "harness_conversations" VALUES(1,'sub');
CREATE TABLE harness_events (
        run_id TEXT NOT NULL, number BIGINT NOT NULL, happened_at REAL NOT NULL,
        body TEXT NOT NULL, ends BLOB, PRIMARY KEY (run_id, number));
INSERT INTO "harness_events" VALUES('r',2,12.5,'{"type":"text_delta","text":"ab","message_id":"m"}',X'0100000002000000');
INSERT INTO "harness_events" VALUES('r',3,12.5,'{"type":"run_result","status":"completed","text":"ab","usage":{}}',NULL);
INSERT INTO "harness_events" VALUES('going',1,12.5,'{"type":"text_delta","text":"a","message_id":"m"}',NULL);
CREATE TABLE harness_executions (
        run_id TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, user_id TEXT NOT NULL, session_id TEXT NOT NULL, request_id TEXT NOT NULL, digest TEXT NOT NULL,
        body TEXT NOT NULL, status TEXT NOT NULL, fence BIGINT NOT NULL, state TEXT,
        steps BIGINT NOT NULL, replaced BIGINT NOT NULL, answered BIGINT NOT NULL,
        result_status TEXT NOT NULL, created_at REAL NOT NULL, changed_at REAL NOT NULL,
        UNIQUE (tenant_id, user_id, session_id, request_id));
INSERT INTO "harness_executions" VALUES('going','here','ann','s','q','59c818e2bb110c9e5959079c51d21c2742b32575d18f20616cddffbf582697f9','{"v":1,"run_id":"going","identity":{"tenant_id":"here","user_id":"ann"},"session_id":"s","request_id":"q","text":"hello","attachments":[{"type":"image","media_type":"image/png","sha256":"2cea274d0bedc39ec4ab6ba9e59ec889e3ed6fb56a1cf088a64d9b383378dc97","name":"p.png","width":4,"height":4,"kept":7},{"type":"resource","uri":"file:a","name":"a","media_type":"text/plain","text":"a text \u0000 \ud800","source":"server","file_bytes":3}],"fitting":{"model":"demo:demo"},"about":{"chat":[1,null]}}','running',1,'{"v":1,"run_id":"r","limits":{"max_iterations":10,"max_cost_dollars":null,"max_parallel_tools":2,"attempts":3,"backoff_seconds":0.5,"max_backoff_seconds":8.0,"max_repeats":null},"phase":"model","message_count":0,"last_role":"user","calls":[],"iterations":4,"attempt":1,"delay":0.0,"usage":{"input_tokens":0,"output_tokens":0,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,"thinking_tokens":0},"cost":null,"last_round":"","repeats":0,"cancelling":"","ending":null,"condensing":null,"squeezes":0,"summaries_off":false,"grants":[],"resumes":0}',5,0,3,'',1.7960290583479821682e+09,1.79602905837401294712e+09);
INSERT INTO "harness_executions" VALUES('ended','here','ann','s','q2','59c818e2bb110c9e5959079c51d21c2742b32575d18f20616cddffbf582697f9','{"v":1,"run_id":"ended","identity":{"tenant_id":"here","user_id":"ann"},"session_id":"s","request_id":"q2","text":"hello","attachments":[{"type":"image","media_type":"image/png","sha256":"2cea274d0bedc39ec4ab6ba9e59ec889e3ed6fb56a1cf088a64d9b383378dc97","name":"p.png","width":4,"height":4,"kept":7},{"type":"resource","uri":"file:a","name":"a","media_type":"text/plain","text":"a text \u0000 \ud800","source":"server","file_bytes":3}],"fitting":{"model":"demo:demo"},"about":{"chat":[1,null]}}','ended',1,NULL,1,0,0,'completed',1.79602905838399076461e+09,1.79602905840700411799e+09);
CREATE TABLE harness_leases (
        tenant_id TEXT NOT NULL, user_id TEXT NOT NULL, session_id TEXT NOT NULL, holder TEXT NOT NULL, fence BIGINT NOT NULL, expires_at REAL NOT NULL,
        PRIMARY KEY (tenant_id, user_id, session_id));
INSERT INTO "harness_leases" VALUES('here','ann','s','',1796029058292,0.0);
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
CREATE TABLE harness_records (
        tenant_id TEXT NOT NULL, user_id TEXT NOT NULL, session_id TEXT NOT NULL, place REAL NOT NULL, deleted_at REAL, body TEXT NOT NULL,
        PRIMARY KEY (tenant_id, user_id, session_id));
INSERT INTO "harness_records" VALUES('here','ann','s',1.5,NULL,'{"title":"Hello"}');
CREATE TABLE harness_run_pictures (
        run_id TEXT NOT NULL, sha256 TEXT NOT NULL, data BLOB NOT NULL,
        PRIMARY KEY (run_id, sha256));
INSERT INTO "harness_run_pictures" VALUES('going','2cea274d0bedc39ec4ab6ba9e59ec889e3ed6fb56a1cf088a64d9b383378dc97',X'70696374757265');
INSERT INTO "harness_run_pictures" VALUES('ended','2cea274d0bedc39ec4ab6ba9e59ec889e3ed6fb56a1cf088a64d9b383378dc97',X'70696374757265');
CREATE TABLE harness_runs (
        run_id TEXT PRIMARY KEY, last BIGINT NOT NULL, ended INTEGER NOT NULL,
        joined INTEGER NOT NULL, gap_before BIGINT NOT NULL, token TEXT NOT NULL);
INSERT INTO "harness_runs" VALUES('r',3,1,1,0,'082fa51fdf37492b829dbd3189a86e88');
INSERT INTO "harness_runs" VALUES('going',1,0,0,0,'384783767f99497b826dabec3db219b2');
INSERT INTO "harness_runs" VALUES('ended',0,0,0,0,'c4933afef0ad40a5822f1335c2862a67');
CREATE TABLE harness_schema (version INTEGER PRIMARY KEY, applied_at REAL NOT NULL);
INSERT INTO "harness_schema" VALUES(1,1.79602905828099393848e+09);
INSERT INTO "harness_schema" VALUES(2,1.79602905828199982648e+09);
INSERT INTO "harness_schema" VALUES(3,1.79602905828401136398e+09);
INSERT INTO "harness_schema" VALUES(4,1.79602905828598284716e+09);
CREATE TABLE harness_sessions (
        id INTEGER PRIMARY KEY AUTOINCREMENT, tenant_id TEXT NOT NULL, user_id TEXT NOT NULL, session_id TEXT NOT NULL,
        revision BIGINT NOT NULL, replayable INTEGER NOT NULL, token TEXT NOT NULL,
        updated_at REAL NOT NULL,
        UNIQUE (tenant_id, user_id, session_id));
INSERT INTO "harness_sessions" VALUES(1,'here','ann','s',1,0,'0dfdbf7d3e144c24ac46578f3deeaae6',1.79602905830199575422e+09);
CREATE TABLE harness_states (
        session BIGINT PRIMARY KEY REFERENCES harness_sessions (id) ON DELETE CASCADE,
        body TEXT NOT NULL);
INSERT INTO "harness_states" VALUES(1,'{"n":1}');
CREATE TABLE harness_steps (
        run_id TEXT NOT NULL, number BIGINT NOT NULL, happened_at REAL NOT NULL,
        cursor BIGINT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL, added TEXT,
        PRIMARY KEY (run_id, number));
INSERT INTO "harness_steps" VALUES('going',1,12.5,1,'begun','{"v":1,"kind":"begun"}','{"messages":[{"v":1,"id":"u","role":"user","content":[{"type":"text","text":"hello 日"},{"type":"image","media_type":"image/png","sha256":"2cea274d0bedc39ec4ab6ba9e59ec889e3ed6fb56a1cf088a64d9b383378dc97","name":"p.png","width":4,"height":4,"kept":7}]}]}');
INSERT INTO "harness_steps" VALUES('going',2,12.5,1,'model_call','{"v":1,"kind":"model_call","about":{"model":"demo:demo","tokens":12,"seconds":1.5}}',NULL);
INSERT INTO "harness_steps" VALUES('going',3,12.5,1,'answered','{"v":1,"kind":"answered","outcome":{"type":"model_answered","size":9,"calls":[{"id":"c1","name":"look"}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":2},"cost":0.5},"calls":[{"use":{"type":"tool_use","id":"c1","name":"look","arguments":{"at":[1,{"\u0000":"\ud800 \u65e5"}]}},"message_id":"a1","replay":"safe","approval":"k","decision":"allow","edited":true}]}','{"messages":[{"v":1,"id":"a1","role":"assistant","content":[{"type":"thinking","text":"hm","signature":"seal"},{"type":"text","text":"let me"},{"type":"tool_use","id":"c1","name":"look","arguments":{"at":[1,{"\u0000":"\ud800 \u65e5"}]}}]}]}');
INSERT INTO "harness_steps" VALUES('going',4,12.5,1,'calls_started','{"v":1,"kind":"calls_started","outcome":{"type":"calls_started","call_ids":["c1"]},"calls":[{"use":{"type":"tool_use","id":"c1","name":"look","arguments":{"at":[1,{"\u0000":"\ud800 \u65e5"}]}},"message_id":"a1","replay":"safe","approval":"k","decision":"allow","edited":true}]}',NULL);
INSERT INTO "harness_steps" VALUES('going',5,12.5,1,'call_settled','{"v":1,"kind":"call_settled","outcome":{"type":"call_settled","call_id":"c1","size":7,"digest":"digest"},"calls":[{"use":{"type":"tool_use","id":"c1","name":"look","arguments":{"at":[1,{"\u0000":"\ud800 \u65e5"}]}},"message_id":"a1","replay":"safe","approval":"k","decision":"allow","edited":true,"result":{"type":"tool_result","call_id":"c1","content":[{"type":"text","text":"found 1"},{"type":"image","media_type":"image/png","sha256":"2cea274d0bedc39ec4ab6ba9e59ec889e3ed6fb56a1cf088a64d9b383378dc97","name":"p.png","width":4,"height":4,"kept":7}]},"seconds":0.25}]}','{"messages":[{"v":1,"id":"t1","role":"tool","content":[{"type":"tool_result","call_id":"c1","content":[{"type":"text","text":"found 1"},{"type":"image","media_type":"image/png","sha256":"2cea274d0bedc39ec4ab6ba9e59ec889e3ed6fb56a1cf088a64d9b383378dc97","name":"p.png","width":4,"height":4,"kept":7}]}]}]}');
INSERT INTO "harness_steps" VALUES('ended',1,12.5,0,'begun','{"v":1,"kind":"begun"}','{"messages":[{"v":1,"id":"u","role":"user","content":[{"type":"text","text":"hello 日"},{"type":"image","media_type":"image/png","sha256":"2cea274d0bedc39ec4ab6ba9e59ec889e3ed6fb56a1cf088a64d9b383378dc97","name":"p.png","width":4,"height":4,"kept":7}]}]}');
CREATE INDEX harness_records_by_place ON harness_records (tenant_id, user_id, place, session_id);
CREATE INDEX harness_executions_unfinished ON harness_executions (created_at, run_id) WHERE status <> 'ended';
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('harness_sessions',1);
COMMIT;
