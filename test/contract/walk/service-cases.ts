import type { Call, RouteCases } from './call.ts'

const anybody = (): Promise<Call> => Promise.resolve({ as: 'nobody' })

/** What the service says of itself. */
export const serviceCases = {
  'root.index': { success: anybody },
  'root.openapi': { success: anybody },
  'root.docs': { success: anybody },
} satisfies Record<string, RouteCases>
