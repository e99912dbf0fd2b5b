import type { Call, RouteCases } from './call.ts'

const operator = (): Promise<Call> => Promise.resolve({ as: 'operator' })
const noSuchFile = (): Promise<Call> => Promise.resolve({ as: 'operator', query: { file: 'nothing.log' } })

/** C §4.1. */
export const diagCases = {
  'diag.sysinfo': { success: () => Promise.resolve({ as: 'operator', query: { with_settings: true } }) },
  'diag.worker': { success: () => Promise.resolve({ as: 'operator', query: { with_tasks: true } }) },
  'diag.logs.list': {
    success: operator,
    errors: { not_found: () => Promise.resolve({ as: 'operator', query: { path: 'nothing' } }) },
  },
  'diag.logs.view': { success: operator, errors: { not_found: noSuchFile } },
  'diag.logs.stream': { success: operator, errors: { not_found: noSuchFile } },
  'diag.logs.monitor': { success: () => Promise.resolve({ as: 'nobody' }) },
  'diag.tasks.bestsellers': {
    success: () => Promise.resolve({ as: 'operator', query: { sync_mode: true } }),
  },
  'diag.tasks.update_timed_out_orders': { success: operator },
  'diag.tasks.delete_expired_orders': { success: operator },
  'diag.tasks.notify_about_expiring_orders': { success: operator },
  'diag.tasks.update_unclaimed_orders_to_failed': { success: operator },
  'diag.tasks.notify_about_unclaimed_orders': { success: operator },
} satisfies Record<string, RouteCases>
