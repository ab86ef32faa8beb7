# The page in a container, without torch. Build the wheel first; the port outside must be the port inside.
#   make wheel && docker build -t hotlap .
#   docker run --rm -p 127.0.0.1:8000:8000 -e HOTLAP_PLAY_TOKEN="$TOKEN" hotlap     then open http://127.0.0.1:8000/?token=$TOKEN
# Any other command: docker run --rm hotlap evaluate champion
FROM python:3.12-slim

ENV PYTHONUNBUFFERED=1 \
    HOTLAP_HOME=/home/hotlap/data \
    HOTLAP_CACHE=/home/hotlap/cache

COPY constraints.txt dist/hotlap-*.whl /packages/
RUN pip install --no-cache-dir --no-compile -c /packages/constraints.txt /packages/hotlap-*.whl \
    && useradd --create-home --uid 1000 hotlap \
    && install --directory --owner=1000 /home/hotlap/data /home/hotlap/cache

USER 1000
WORKDIR /home/hotlap
VOLUME ["/home/hotlap/data", "/home/hotlap/cache"]
EXPOSE 8000

# The first start compiles the simulator for this machine. Only `play` listens; any other command is healthy while it runs.
HEALTHCHECK --interval=30s --timeout=5s --start-period=180s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as u; b'play' not in open('/proc/1/cmdline', 'rb').read().split(b'\\0') or u.urlopen(u.Request('http://127.0.0.1:8000/api/tracks', headers={'Authorization': 'Bearer ' + os.environ.get('HOTLAP_PLAY_TOKEN', '')}), timeout=4)"]

ENTRYPOINT ["hotlap"]
CMD ["play", "--host", "0.0.0.0", "--port", "8000", "--no-open"]
