import { sshFailure } from '../../../protocol/contract/owner-controls.ts'
import type { OwnerCredential } from '../../platform/credentials/credential.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import { changeBin, type ManagementServices } from './bin-changes.ts'

/** O §4.6, contract §6: bins over SSH; status 200 in both outcomes. */
export function managementHandlers(
  services: ManagementServices,
): Handlers<'owner.controls.enable_bin_ssh' | 'owner.controls.disable_bin_ssh'> {
  async function change(
    enabled: boolean,
    { query, credential }: { query: { bin: number; hub: number }; credential: OwnerCredential },
  ) {
    const { bin, hub } = query
    const changed = await changeBin(services, { hubId: hub, bin, enabled, actor: credential.actor })
    const place = { hub_id: hub, bin_number: bin }
    if (!changed.ok) return sshFailure(changed.failure, changed.error, place)
    const { disabled_bins, stop_result, start_result } = changed.answer
    return {
      status: 'ok' as const,
      result: {
        success: true as const,
        ...place,
        enabled_bin: enabled ? bin : null,
        disabled_bins: disabled_bins ?? [],
        stop_result,
        start_result,
      },
    }
  }
  return {
    'owner.controls.enable_bin_ssh': (request) => change(true, request),
    'owner.controls.disable_bin_ssh': (request) => change(false, request),
  }
}
