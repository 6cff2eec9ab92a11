-- Counts the requests under way for each file and refuses those beyond a limit, as http-access-limiter does with mod_mruby.
-- Each process of the server counts for itself: enough to see what the counting costs, too little to limit a server of many processes.

require "apache2"

local limit = 90000000

-- Before a request is worked on.
function enter(r)
    local under_way = (r:ivm_get(r.filename) or 0) + 1
    r:ivm_set(r.filename, under_way)
    if under_way > limit then
        r:notice("access_limiter: file:" .. r.filename .. " reached threshold: " .. limit .. ": return 503")
        return 503
    end
    return apache2.DECLINED
end

-- When it is logged.
function leave(r)
    r:ivm_set(r.filename, (r:ivm_get(r.filename) or 1) - 1)
    return apache2.DECLINED
end
