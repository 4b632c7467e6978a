-- SPDX-License-Identifier: Apache-2.0
-- Statements that users of this kind of tool already type; each must run as written against a live training job.
SELECT func, file, lineno FROM python.backtrace LIMIT 5;
SELECT * FROM python.backtrace ORDER BY depth LIMIT 10;
SELECT * FROM python.backtrace;
SELECT * FROM memory_usage WHERE timestamp > now() - interval '5 min';
SELECT hour(timestamp), avg(memory_mb) FROM memory_usage GROUP BY hour(timestamp);
SELECT operation_name, avg(duration_ms), count(*)
  FROM profiling_data
  WHERE timestamp > now() - interval '5 minutes'
  GROUP BY operation_name
  ORDER BY avg(duration_ms) DESC;
SELECT * FROM python.torch_trace;
SELECT
    operation_name,
    AVG(duration_ms) as avg_duration,
    COUNT(*) as call_count
FROM python.torch_trace
WHERE timestamp > now() - interval '5 minutes'
GROUP BY operation_name
ORDER BY avg_duration DESC
LIMIT 10;
SELECT epoch, avg(loss), min(loss), count(*) as steps
  FROM training_logs
  GROUP BY epoch
  ORDER BY epoch;
-- later, with many ranks, a GPU, and allocation sampling:
SELECT src_rank, dst_rank, avg(latency_ms) FROM comm_metrics;
SELECT avg(gpu_util) FROM gpu_metrics WHERE timestamp > now() - 60;
SELECT function_name, sum(allocated_bytes) as total_alloc
  FROM memory_allocations
  WHERE timestamp > now() - interval '1 hour'
  GROUP BY function_name
  ORDER BY total_alloc DESC;
