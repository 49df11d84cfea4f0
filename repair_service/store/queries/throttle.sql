-- The first row of the operator's own query. The query is a table in this statement, so it can be
-- nothing but a query; its first column says whether to wait.
SELECT asked.*
FROM (
{query}
) AS asked
LIMIT 1
