/** O §4.6, standard response. 200: executed; 202: accepted, the hub goes on with it (contract §6). */
export const ok = <Status extends 200 | 202, Data>(status_code: Status, response_data: Data) => ({
  status: 'ok' as const,
  result: { success: true, status_code, response_data },
})
