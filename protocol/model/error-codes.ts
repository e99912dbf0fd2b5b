/**
 * Every error code of both interfaces with its HTTP status and its default message.
 * `hardware_error` is 504 if no answer came in time: see `errorStatus`.
 */
export const errorCodes = {
  // 400
  invalid_cursor: {
    status: 400,
    message: 'The cursor belongs to another list, or its item is no longer stored.',
  },
  invalid_json: { status: 400, message: 'The body is not valid JSON.' },
  invalid_signature: { status: 400, message: 'The signature does not match the body, or is too old.' },
  bad_request: { status: 400, message: 'The request is not well-formed HTTP.' },
  // 401
  authentication_required: { status: 401, message: 'A credential is required.' },
  invalid_api_key: { status: 401, message: 'The API key is not valid.' },
  invalid_token: { status: 401, message: 'The access token is not valid.' },
  token_expired: { status: 401, message: 'The credential has expired.' },
  // 402
  refund_failed: { status: 402, message: 'The processor rejected the refund.' },
  card_declined: { status: 402, message: 'The card was declined.' },
  insufficient_funds: { status: 402, message: 'The balance of the wallet is below the total.' },
  payment_failed: { status: 402, message: 'The payment failed.' },
  // 403
  scope_missing: { status: 403, message: 'The credential lacks the scope that this endpoint requires.' },
  unauthorized: { status: 403, message: 'The credential has no access to this hub.' },
  hub_access_denied: { status: 403, message: 'The credential has no access to this hub.' },
  forbidden: { status: 403, message: "The user named in the path is not the token's." },
  invalid_claim_code: { status: 403, message: 'The claim code is unknown, used or expired.' },
  external_payments_disabled: {
    status: 403,
    message: 'The hub does not take external payments from this customer.',
  },
  // 404
  hub_not_found: { status: 404, message: 'No such hub.' },
  product_not_found: { status: 404, message: 'No such product.' },
  order_not_found: { status: 404, message: 'No such order.' },
  bin_not_found: { status: 404, message: 'This hub has no such bin.' },
  deal_not_found: { status: 404, message: 'No such deal.' },
  not_found: { status: 404, message: 'Not found.' },
  product_not_in_order: { status: 404, message: 'The order has no such product.' },
  user_not_found: { status: 404, message: 'No such user.' },
  payment_method_not_found: { status: 404, message: 'No such payment method.' },
  fridge_not_found: { status: 404, message: 'This hub has no such fridge.' },
  banner_not_found: { status: 404, message: 'No such banner.' },
  webhook_not_found: { status: 404, message: 'No such webhook.' },
  alarm_not_found: { status: 404, message: 'No such alarm.' },
  delivery_not_found: { status: 404, message: 'The webhook has no such delivery.' },
  operation_not_found: { status: 404, message: 'No such operation.' },
  route_not_found: { status: 404, message: 'No such endpoint.' },
  // 405
  method_not_allowed: { status: 405, message: 'This endpoint does not have that method.' },
  // 409
  already_refunded: { status: 409, message: 'The order is fully refunded already.' },
  order_in_progress: { status: 409, message: 'An order is in progress.' },
  order_already_paid: { status: 409, message: 'The order is paid already.' },
  order_not_editable: { status: 409, message: 'The order can no longer be changed.' },
  order_not_ready: { status: 409, message: 'The order is not ready.' },
  order_not_deletable: { status: 409, message: 'The order can no longer be deleted.' },
  order_state_conflict: { status: 409, message: 'The order has changed since it was read.' },
  total_changed: { status: 409, message: "The order's total is not the expected one." },
  insufficient_stock: { status: 409, message: 'There is not enough stock.' },
  hub_not_accepting_orders: { status: 409, message: 'The hub does not accept orders now.' },
  no_bin_available: { status: 409, message: 'No delivery bin is available.' },
  wallet_not_empty: { status: 409, message: 'The wallet holds money, or a deposit is in progress.' },
  operation_settled: { status: 409, message: 'The operation already has the opposite outcome.' },
  duplicate_upc: { status: 409, message: 'Another product of this hub has this UPC.' },
  webhook_limit_reached: { status: 409, message: 'The owner has the maximum number of webhooks.' },
  invitation_limit_reached: { status: 409, message: 'The owner has the maximum number of open invitations.' },
  contact_limit_reached: { status: 409, message: 'The owner has the maximum number of contacts.' },
  idempotency_key_in_use: { status: 409, message: 'A request with this idempotency key is in progress.' },
  // 408, 413, 415
  request_timeout: { status: 408, message: 'The request did not arrive in time.' },
  payload_too_large: { status: 413, message: 'The body is too large.' },
  unsupported_media_type: { status: 415, message: 'The body must be application/json.' },
  // 416
  range_not_satisfiable: { status: 416, message: 'The file has no such bytes.' },
  // 417
  expectation_failed: { status: 417, message: 'Only the expectation 100-continue is supported.' },
  // 422
  cart_empty: { status: 422, message: 'The order has no items.' },
  amount_too_small: { status: 422, message: 'The total is less than a card can pay.' },
  validation_error: { status: 422, message: 'The request is not valid.' },
  invalid_location: { status: 422, message: 'Cabinet, shelf or row is out of range.' },
  invalid_quantity: { status: 422, message: 'The quantity must be a non-negative integer.' },
  invalid_price: { status: 422, message: 'The price must be a positive integer (cents).' },
  insufficient_quantity: {
    status: 422,
    message: 'The quantity is above the purchased units that can still be refunded.',
  },
  hub_id_required: { status: 422, message: 'hubId is required.' },
  invalid_amount: { status: 422, message: 'The amount must be between 1 and what can still be refunded.' },
  invalid_destination: { status: 422, message: 'The only destination is "Bank Account".' },
  bin_not_in_order: { status: 422, message: 'The order has no goods in this bin.' },
  invalid_upc: { status: 422, message: 'The UPC must have 12 digits and a valid check digit.' },
  invalid_purchase_price: {
    status: 422,
    message: 'The purchase price must be a non-negative integer (cents).',
  },
  idempotency_key_reused: { status: 422, message: 'This idempotency key was used with another request.' },
  // 429
  rate_limit_exceeded: { status: 429, message: 'Too many requests.' },
  // 431
  headers_too_large: { status: 431, message: 'The headers of the request exceed 32 KiB.' },
  // 5xx
  internal_error: { status: 500, message: 'The service failed.' },
  hardware_error: { status: 502, message: 'The hub did not execute the command.' },
  processor_unavailable: { status: 503, message: 'The card processor cannot be reached.' },
  identity_unavailable: { status: 503, message: 'The issuer of identity tokens cannot be reached.' },
  service_unavailable: { status: 503, message: 'The service cannot do this now. Try again soon.' },
  hub_offline: { status: 503, message: 'The hub is offline.' },
} as const satisfies Record<string, { status: number; message: string }>

export type ErrorCode = keyof typeof errorCodes
export const errorCodeNames = Object.keys(errorCodes) as [ErrorCode, ...ErrorCode[]]

/** The HTTP status of an error. Only that of `hardware_error` depends on its details: 504 if the hardware did not answer. */
export function errorStatus(code: ErrorCode, details?: Readonly<Record<string, unknown>>): number {
  if (code === 'hardware_error' && details?.['reason'] === 'timeout') return 504
  return errorCodes[code].status
}
