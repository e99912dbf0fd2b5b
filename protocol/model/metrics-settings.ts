import { hostText, inGroup, limits, numberText } from './program-settings.ts'

/**
 * Metrics reveal business figures, so they have their own port. Its listening address closes it to others, and a
 * scraper needs no secret.
 */
export const metricsSettings = {
  ...inGroup('Observation', {
    METRICS_PORT: {
      schema: numberText(0, 65_535).optional(),
      describe:
        'Port of GET /metrics (Prometheus), of /healthz and /readyz, open to every caller who reaches it; 0 takes any free one. Default: no metrics.',
    },
  }),
  ...limits('Observation', {
    METRICS_HOST: hostText(
      'Address that METRICS_PORT listens on; the port asks for no credential.',
      '127.0.0.1',
    ),
  }),
}
