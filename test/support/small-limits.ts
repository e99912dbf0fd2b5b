import { defaultLimits } from '../../cloud/platform/settings/limits.ts'

/**
 * With SMALL_LIMITS=1 every batch of due work is one row, and one row runs at a time: no limit may prevent
 * work. Imported before any module that copies the settings.
 */
if (process.env['SMALL_LIMITS'] === '1')
  Object.assign(defaultLimits.rules, {
    workBatch: 1,
    workConcurrency: 1,
    retentionBatch: 1,
    eventBatch: 1,
    eventsInMemory: 1,
    webhookConcurrency: 1,
  })
