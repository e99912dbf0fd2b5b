import type { Call, RouteCases } from './call.ts'

const anybody = (): Promise<Call> => Promise.resolve({ as: 'nobody' })

/** The service's descriptions of itself. */
export const serviceCases = {
  'root.index': { success: anybody },
  'root.openapi': { success: anybody },
  'root.docs': { success: anybody },
  'root.docs.file': {
    success: () => Promise.resolve({ as: 'nobody', params: { path: 'main.js' } }),
    errors: {
      not_found: () => Promise.resolve({ as: 'nobody', params: { path: 'none.js' } }),
      validation_error: () => Promise.resolve({ as: 'nobody', params: { path: '\0' } }),
    },
  },
} satisfies Record<string, RouteCases>
