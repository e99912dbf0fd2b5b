import { hostText, inGroup, limits, numberText } from './program-settings.ts'

/**
 * Where metrics are read. They tell how business goes, so they are not on the port that callers reach: one of their own is
 * closed to others by the address it listens on, and a scraper needs no secret for it.
 */
export const metricsSettings = {
  ...inGroup('Observation', {
    METRICS_PORT: {
      schema: numberText(0, 65_535).optional(),
      describe:
        'Port of GET /metrics (Prometheus), of /healthz and /readyz, for whoever reaches it; 0 takes any free one. Default: no metrics.',
    },
  }),
  ...limits('Observation', {
    METRICS_HOST: hostText(
      'Address that METRICS_PORT listens on; nobody is asked there who they are.',
      '127.0.0.1',
    ),
  }),
}
